"""The cron operations of the SQL stores change everything or nothing, wherever they fail."""

from collections.abc import Callable, Generator
from itertools import count
from math import inf
from typing import Any, TypeVar

import pytest

from duequeue.contract.test_cron_port import Node, at, node, open_node
from duequeue.port.store import Operation, Session

T = TypeVar("T")

__all__ = ["node", "open_node"]  # fixtures


class Stopped(Exception):
    """The operation has come as far as it may."""


class FailsMidway:
    """A session whose operations fail after so many commands."""

    def __init__(self, session: Session, commands: int) -> None:
        self._session = session
        self._commands_left = commands

    def run(self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False) -> T:
        return self._session.run(lambda: self._limited(operation), seconds, consumes=consumes)

    def close(self) -> None:
        self._session.close()

    def _limited(self, operation: Operation[T]) -> Generator[Any, Any, T]:
        steps = operation()
        reply = None
        while True:
            try:
                command = steps.send(reply)
            except StopIteration as done:
                result: T = done.value
                return result
            reply = yield command
            self._commands_left -= 1
            if self._commands_left == 0:
                raise Stopped


CHANGES: dict[str, Callable[[Node], object]] = {
    "install": lambda node: node.install("two", 1, 2, created_until=at(2)),
    "add": lambda node: node.install("one", 3, created_until=at(3), takes_over=False),
    "uninstall": lambda node: node.uninstall("one"),
    "pause": lambda node: node.pause(),
}


@pytest.mark.parametrize("store", ["sqlite", "postgres", "mariadb"], indirect=True)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_operation_that_fails_midway_has_changed_nothing(
    node: Node, change: Callable[[Node], object]
) -> None:
    node.install("one", 1, 2, created_until=at(2))
    before = node.state()
    for commands in count(1):
        try:
            change(node._replace(session=FailsMidway(node.session, commands)))
        except Stopped:
            assert node.state() == before
        else:
            break
    assert commands > 4
    assert node.state() != before

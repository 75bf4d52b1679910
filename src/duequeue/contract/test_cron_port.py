"""The port of the crons: each operation is whole, and changes everything or nothing."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import pytest

from duequeue.backends import backend_for
from duequeue.contract.fixtures import START
from duequeue.instants import to_millis
from duequeue.port.cron_table import (
    CronLook,
    CronRow,
    CronTable,
    Installation,
    Installed,
    Standing,
    Tick,
)
from duequeue.port.store import Session, Store

T = TypeVar("T")

NOW = to_millis(START)
MINUTE = 60_000


class Node(NamedTuple):
    """One store as a node sees it, without a queue in between."""

    session: Session
    store: Store

    @property
    def cron(self) -> CronTable:
        return self.store.cron

    def install(self, config_hash: str, *minutes: int, **wishes: Any) -> Installed:
        """Install ticks for so many minutes from now."""
        return self.session.run(
            partial(self.cron.install, wish(config_hash, *minutes, **wishes), NOW)
        )

    def look(self, config_hash: str, since: int = NOW) -> CronLook:
        return self.session.run(partial(self.cron.look, "reports", config_hash, since))

    def pause(self) -> bool:
        return self.session.run(partial(self.cron.set_paused, "reports", NOW, paused=True))

    def uninstall(self, config_hash: str) -> int:
        return self.session.run(partial(self.cron.uninstall, "reports", config_hash, NOW))

    def state(self) -> object:
        """Return all that can be seen."""
        return (
            self.look("one", 0),
            self.look("two", 0),
            self.session.run(self.cron.listing),
            self.session.run(partial(self.store.counts, NOW)),
        )


OpenNode: TypeAlias = Callable[[], Node]


@pytest.fixture
def open_node(store_url: str) -> Iterator[OpenNode]:
    """A factory of nodes on the store under test."""
    with ExitStack() as opened:

        def open_one() -> Node:
            backend = backend_for(store_url)
            session = backend.session()
            opened.callback(session.close)
            opening = partial(
                backend.open_store, "orders|json", MINUTE, migrate=True, history=False
            )
            return Node(session, session.run(opening))

        yield open_one


@pytest.fixture
def node(open_node: OpenNode) -> Node:
    return open_node()


def at(minute: int) -> int:
    return NOW + minute * MINUTE


def wish(config_hash: str, *minutes: int, payload: bytes = b"1", **wishes: Any) -> Installation:
    ticks = [
        Tick(at(minute), f"reports/{config_hash}/{minute}", payload, at(minute))
        for minute in minutes
    ]
    return Installation("reports", config_hash, ahead=ticks, **wishes)


def test_a_prefix_that_was_never_installed(node: Node) -> None:
    nothing = CronLook(CronRow(), frozenset())
    assert node.look("one") == nothing
    assert not node.pause()
    assert not node.session.run(partial(node.cron.set_paused, "reports", NOW, paused=False))
    assert node.uninstall("one") == 0
    assert node.look("one") == nothing
    assert node.session.run(node.cron.listing) == []


def test_what_an_installation_reports(node: Node) -> None:
    assert node.install("one", 3, 1, 2) == Installed(Standing.RUNNING, 3, at(1))
    assert node.install("one", 3, 1, 2) == Installed(Standing.RUNNING, 0, None)
    assert node.install("one", 3, payload=b"2") == Installed(Standing.RUNNING, 0, at(3))
    assert node.install("one", 3, 4) == Installed(Standing.RUNNING, 1, at(3))


def test_what_a_look_sees(node: Node) -> None:
    node.install("one", 1, 2, schedule="now and then", created_until=at(2))
    row = CronRow("one", "now and then", 1, installed=True, paused=False, created_until=at(2))
    assert node.look("one") == CronLook(row, frozenset({at(1), at(2)}))
    assert node.look("one", at(2)) == CronLook(row, frozenset({at(2)}))
    assert node.look("one", at(2) + 1) == CronLook(row, frozenset())
    assert node.look("two") == CronLook(row, frozenset())


OTHERS: dict[str, tuple[Callable[[Node], object], Standing]] = {
    "never installed": (lambda _: None, Standing.UNINSTALLED),
    "another": (lambda node: node.install("two", 1), Standing.REPLACED),
    "paused": (lambda node: (node.install("one", 1), node.pause()), Standing.PAUSED),
    "uninstalled": (
        lambda node: (node.install("one", 1), node.uninstall("one")),
        Standing.UNINSTALLED,
    ),
}


@pytest.mark.parametrize(("before", "standing"), OTHERS.values(), ids=OTHERS)
def test_an_installation_that_does_not_take_over_adds_only_to_its_own(
    node: Node, before: Callable[[Node], object], standing: Standing
) -> None:
    before(node)
    found = node.state()
    assert node.install("one", 2, created_until=at(2), takes_over=False) == Installed(standing)
    assert node.state() == found


def test_of_two_configurations_at_once_one_is_whole_and_the_other_is_not_there(
    open_node: OpenNode,
) -> None:
    nodes = {"one": open_node(), "two": open_node()}
    for _ in range(20):
        with ThreadPoolExecutor(len(nodes)) as threads:
            calls = [threads.submit(each.install, name, 1, 2, 3) for name, each in nodes.items()]
        assert {call.result().standing for call in calls} == {Standing.RUNNING}
        winner = nodes["one"].look("one").row.config_hash
        for name, each in nodes.items():
            expected = {at(1), at(2), at(3)} if name == winner else set()
            assert each.look(name).known == expected
        assert nodes["one"].session.run(partial(nodes["one"].store.counts, NOW)).future == 3

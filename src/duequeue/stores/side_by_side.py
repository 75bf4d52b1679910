"""Several operations of stores at once: the next command of each goes out with the others."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from duequeue.port.store import Steps

T = TypeVar("T")


class Together(NamedTuple):
    """Run commands side by side, each by itself; the reply is the list of their replies."""

    commands: Sequence[Any]


class Undo(NamedTuple):
    """Run commands for a task that was cancelled, if that is possible soon; there is no reply."""

    commands: Sequence[Any]


def side_by_side(operations: Sequence[Steps[T]]) -> Steps[list[T]]:
    """Run operations together, and return their results in order.

    If one fails, the error is raised when all commands of that round have been answered, and the
    others end as well.
    """
    if len(operations) == 1:
        return [(yield from operations[0])]
    try:
        return (yield from _in_rounds(operations))
    finally:
        for each in operations:
            each.close()


def _in_rounds(operations: Sequence[Steps[T]]) -> Steps[list[T]]:
    results: dict[int, T] = {}
    replies: dict[int, Any] = dict.fromkeys(range(len(operations)))
    while replies:
        commands = {}
        for number, reply in replies.items():
            try:
                commands[number] = operations[number].send(reply)
            except StopIteration as done:
                results[number] = done.value
        if not commands:
            break
        answers: list[Any] = yield Together(tuple(commands.values()))
        replies = dict(zip(commands, answers, strict=True))
    return [results[number] for number in range(len(operations))]

"""Several operations of a store at once: the next script of each goes out with the others."""

from collections.abc import Sequence
from typing import Any, TypeVar

from duequeue.port.store import Steps
from duequeue.stores.redis.commands import Together

T = TypeVar("T")


def side_by_side(operations: Sequence[Steps[T]]) -> Steps[list[T]]:
    """Run operations together, and return their results in order.

    If one fails, the error is raised when all scripts of that round have been answered, and the
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

"""Operations on some or all shards of a queue at once, and the rules by which they go to shards.

A key is always in the same shard. Each shard has ids of its own. Outside, the number `n` of shard
`s` is `n * shards + s`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar
from zlib import crc32

from duequeue.port.burial_table import BurialTable
from duequeue.port.listing import BurialId
from duequeue.port.store import Answer, Burial, Expiry, Lease, Release, Steps, Store

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="Store | BurialTable")
Part = TypeVar("Part")
Item = TypeVar("Item", bound="Lease | Answer | Burial | Expiry | Release")


def shard_of(key: str, shards: int) -> int:
    """Return the number of the shard that has a key; this must never change."""
    return crc32(key.encode()) % shards


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


class Shards(Generic[S]):
    """The stores of all shards, or the same part of each."""

    def __init__(self, stores: Sequence[S]) -> None:
        self._stores = stores
        self._count = len(stores)

    def _of(self, key: str) -> S:
        return self._stores[shard_of(key, self._count)]

    def _each(
        self, parts: Mapping[int, Part], operation: Callable[[S, Part], Steps[T]]
    ) -> Steps[dict[int, T]]:
        """Run an operation on some shards, each with a part of the work."""
        steps = [operation(self._stores[shard], part) for shard, part in parts.items()]
        return dict(zip(parts, (yield from side_by_side(steps)), strict=True))

    def _all(self, operation: Callable[[S, int], Steps[T]]) -> Steps[dict[int, T]]:
        """Run an operation on all shards, which are numbered."""
        return self._each({shard: shard for shard in range(self._count)}, operation)

    def _outside(self, shard: int, number: int) -> int:
        """Return the number by which something in a shard is known outside."""
        return number * self._count + shard

    def _inside(self, shard: int, number: int) -> int:
        """Return the last number of a shard that is not above a number from outside."""
        return (number - shard) // self._count

    def _burial_inside(self, shard: int, burial: BurialId) -> BurialId:
        return burial._replace(number=self._inside(shard, burial.number))

    def _leased_outside(self, found: Mapping[int, Sequence[Any]]) -> list[Any]:
        """Return what each shard has leased, under the ids by which it is known outside."""
        return [
            each._replace(lease=each.lease._replace(id=self._outside(shard, each.lease.id)))
            for shard, part in found.items()
            for each in part
        ]


# The rules. Each takes an operation of a store, and returns the same operation on all of them.


def by_key(
    operation: Callable[Concatenate[Any, str, P], Steps[T]],
) -> Callable[Concatenate[Shards[Any], str, P], Steps[T]]:
    """Run it on the shard that has the key."""
    name = operation.__name__

    def run(self: Shards[Any], key: str, /, *given: P.args, **named: P.kwargs) -> Steps[T]:
        steps: Steps[T] = getattr(self._of(key), name)(key, *given, **named)
        return steps

    return run


def by_lease(
    operation: Callable[Concatenate[Any, Sequence[Item], P], Steps[set[int]]],
) -> Callable[Concatenate[Shards[Any], Sequence[Item], P], Steps[set[int]]]:
    """Run it on each shard with the leases, or the items that have one, which belong there."""
    name = operation.__name__

    def run(
        self: Shards[Any], items: Sequence[Item], /, *given: P.args, **named: P.kwargs
    ) -> Steps[set[int]]:
        def settle(store: Store, part: list[Any]) -> Steps[set[int]]:
            steps: Steps[set[int]] = getattr(store, name)(part, *given, **named)
            return steps

        found = yield from self._each(parts_of(items, self._count), settle)
        return {self._outside(shard, number) for shard, won in found.items() for number in won}

    return run


def joined(
    operation: Callable[Concatenate[Any, P], Steps[T]], join: Callable[[list[T]], T]
) -> Callable[Concatenate[Shards[Any], P], Steps[T]]:
    """Run it on all shards, and join the results."""
    name = operation.__name__

    def run(self: Shards[Any], /, *given: P.args, **named: P.kwargs) -> Steps[T]:
        found = yield from self._all(lambda store, _: getattr(store, name)(*given, **named))
        return join([*found.values()])

    return run


def parts_of(items: Sequence[Any], shards: int) -> dict[int, list[Any]]:
    """Sort leases, or items that have one, by shard, with the ids that they have there."""
    found: dict[int, list[Any]] = {}
    for each in items:
        lease = each if isinstance(each, Lease) else each.lease
        number, shard = divmod(lease.id, shards)
        inside = lease._replace(id=number)
        part = found.setdefault(shard, [])
        part.append(inside if each is lease else each._replace(lease=inside))
    return found

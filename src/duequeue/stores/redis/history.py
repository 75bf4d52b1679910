"""The history of one kind of message in Redis: a stream for each day."""

from duequeue.port.history_table import DAY, SettledRow
from duequeue.port.store import Steps
from duequeue.stores.redis.calling import Caller
from duequeue.stores.redis.commands import Script
from duequeue.stores.redis.keys import QueueKeys
from duequeue.stores.redis.packing import NOTHING
from duequeue.stores.redis.scripts import code


class RedisHistory:
    """Reads and deletes rows of the history; the scripts that settle messages write them."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def newest(self, limit: int, key: str | None) -> Steps[list[SettledRow]]:
        """Read the days from the newest on, a thousand rows in each script."""
        found: list[SettledRow] = []
        for day in reversed((yield from days_of(self._caller.keys))):
            if len(found) >= limit:
                break
            of_day: list[SettledRow] = []
            before: bytes | None = b"+"
            while before and len(found) + len(of_day) < limit:
                words = (before, key or "")
                before, *rest = yield self._of_day("settled", day, words)
                parts = iter(rest)
                of_day += [
                    settled_row(self._caller.kind, number, row)
                    for number, row in zip(parts, parts, strict=True)
                ]
                before = before and b"(" + before
            # The clock may have been set back meanwhile.
            found += sorted(of_day, key=lambda row: (row.settled_at, row.id), reverse=True)
        return found[:limit]

    def delete_old(self, before: int, limit: int) -> Steps[bool]:
        """Delete whole days, then rows of the first day that stays; return whether any are left."""
        for day in (yield from days_of(self._caller.keys)):
            if day + DAY <= before:
                yield self._of_day("forget_rows", day, (day, "", 0))
            elif day < before:
                return bool((yield self._of_day("forget_rows", day, (day, before, limit))))
        return False

    def _of_day(self, name: str, day: int, words: tuple[str | bytes | int, ...]) -> Script:
        keys = self._caller.keys
        found = code(name)
        named = [keys.rows(day) if key == "rows" else keys.named(key) for key in found.keys]
        return Script(found, named, words)


def days_of(keys: QueueKeys) -> Steps[list[int]]:
    """Return the days on which rows were written, the oldest first."""
    found = yield Script(code("days"), [keys.days], ())
    return sorted(map(int, found))


def settled_row(kind: str, number: bytes, row: bytes) -> SettledRow:
    """Return a row of the history."""
    settled_at, outcome, asked, attempts, delivered, handler_ms, key = row.split(b" ", 6)
    return SettledRow(
        number_of(number),
        kind,
        key.decode(),
        int(asked),
        None if delivered == NOTHING else int(delivered),
        int(settled_at),
        int(attempts),
        outcome.decode(),
        None if handler_ms == NOTHING else int(handler_ms),
    )


def number_of(id_in_stream: bytes) -> int:
    """Return the id of a row."""
    return int(id_in_stream.partition(b"-")[0])

"""The history of a whole Redis; see `port.history_table.HistoryTable`."""

from collections import defaultdict
from collections.abc import Callable

from duequeue.port.history_table import (
    DAY,
    HOUR,
    BurialReason,
    DayBounds,
    HistorySteps,
    ScheduledHour,
    SettledRow,
)
from duequeue.port.store import Steps
from duequeue.stores.redis.commands import MOST_AT_ONCE, MOST_BYTES, Caller, Script
from duequeue.stores.redis.keys import QueueKeys
from duequeue.stores.redis.listing import Leases
from duequeue.stores.redis.packing import NOTHING
from duequeue.stores.redis.scripts import code


class RedisHistoryTable:
    """The records of the settled messages of every kind on one server."""

    def __init__(self, list_kinds: Callable[[], HistorySteps[list[str]]]) -> None:
        self._list_kinds = list_kinds

    def days(self) -> HistorySteps[list[tuple[int, str]]]:
        """Ask for the days of each kind that have rows."""
        found: list[tuple[int, str]] = []
        for keys in (yield from self._all_keys()):
            for day in (yield from days_of(keys)):
                *_, rows = yield Script(code("day_bounds"), [keys.rows(day)], ())
                if rows:
                    found.append((day, keys.kind))
        return sorted(found)

    def day_bounds(self, day: int) -> HistorySteps[DayBounds]:
        """Look at both ends of each stream."""
        streams = [keys.rows(day) for keys in (yield from self._all_keys())]
        if not streams:
            return DayBounds(0, 0, 0)
        return DayBounds(*(yield Script(code("day_bounds"), streams, ())))

    def day_rows(
        self, day: int, after_id: int, until_id: int, limit: int
    ) -> HistorySteps[list[SettledRow]]:
        """Read a range of each stream, and merge them."""
        if limit <= 0 or until_id <= max(after_id, 0):
            return []
        found: list[SettledRow] = []
        for keys in (yield from self._all_keys()):
            found += yield from self._rows_of(keys, day, max(after_id, 0), until_id, limit)
        return sorted(found, key=_id_of)[:limit]

    def remove_day(self, day: int, bounds: DayBounds) -> HistorySteps[bool]:
        """Check and remove in one script."""
        pairs = [(keys.rows(day), keys.days) for keys in (yield from self._all_keys())]
        if not pairs:
            return True
        streams = [key for pair in pairs for key in pair]
        words = (bounds.last_id, bounds.rows)
        return bool((yield Script(code("remove_day"), streams, words)))

    def remove_rows(self, day: int, bounds: DayBounds) -> HistorySteps[bool]:
        """Count the rows, then remove them, a thousand in each script.

        Ids only grow, so no row comes between two ids that were counted. If somebody else
        removes a row in the meantime, it is one that was to be removed.
        """
        all_keys = yield from self._all_keys()
        counted: list[DayBounds] = []
        for keys in all_keys:
            counted += yield from _counted(keys.rows(day), bounds)
        rows = sum(each.rows for each in counted)
        first_id = min((each.first_id for each in counted), default=bounds.first_id)
        last_id = max((each.last_id for each in counted), default=bounds.last_id)
        if bounds != (first_id, last_id, rows):
            return False
        for keys in all_keys:
            yield from _removed(keys, day, bounds)
        return True

    def burial_reasons(self, since: int, limit: int) -> HistorySteps[list[BurialReason]]:
        """Read the reasons, a thousand burials in each script."""
        instants: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for keys in (yield from self._all_keys()):
            first, more = 0, True
            while more:
                words = (since, first, MOST_BYTES)
                more, *found = yield Caller(keys).script("burial_reasons", words)
                parts = iter(found)
                for reason, at in zip(parts, parts, strict=True):
                    instants[keys.kind, reason.decode()].append(int(at))
                first += len(found) // 2
        rows = [BurialReason(*of, len(at), max(at)) for of, at in sorted(instants.items())]
        return sorted(rows, key=lambda row: (-row.burials, -row.last_at))[:limit]

    def scheduled(self, now: int, until: int) -> HistorySteps[list[ScheduledHour]]:
        """Count the free messages by hour on the server, and the leased ones here."""
        found: list[ScheduledHour] = []
        for keys in (yield from self._all_keys()):
            caller = Caller(keys)
            parts = iter((yield caller.script("scheduled", (now, until, HOUR))))
            counted = {
                begins_at: (messages, overdue)
                for begins_at, messages, overdue in zip(parts, parts, parts, strict=True)
            }
            leases = Leases(caller)
            yield from leases.see_all()
            for place, _ in leases.seen.values():
                if place.due_at < until:
                    instant = max(place.due_at, now)
                    begins_at = instant - instant % HOUR
                    messages, overdue = counted.get(begins_at, (0, 0))
                    is_overdue = place.due_at <= now
                    counted[begins_at] = (messages + 1, overdue + is_overdue)
            found += [ScheduledHour(keys.kind, at, *counts) for at, counts in counted.items()]
        return sorted(found, key=lambda hour: (hour.begins_at, hour.kind))

    def _all_keys(self) -> HistorySteps[list[QueueKeys]]:
        return [QueueKeys(kind) for kind in (yield from self._list_kinds())]

    def _rows_of(
        self, keys: QueueKeys, day: int, after_id: int, until_id: int, limit: int
    ) -> HistorySteps[list[SettledRow]]:
        found: list[SettledRow] = []
        while len(found) < limit:
            most = min(limit - len(found), MOST_AT_ONCE)
            after = found[-1].id if found else after_id
            words = (after, until_id, most)
            parts = iter((yield Script(code("day_rows"), [keys.rows(day)], words)))
            page = [settled_row(keys.kind, *each) for each in zip(parts, parts, strict=True)]
            found += page
            if len(page) < most:
                break
        return found


def _counted(stream: bytes, within: DayBounds) -> HistorySteps[list[DayBounds]]:
    """Return the bounds of the rows of a stream between two ids, a thousand rows in each."""
    found: list[DayBounds] = []
    begin: bytes | int = within.first_id
    rows = MOST_AT_ONCE
    while rows == MOST_AT_ONCE:
        words = (begin, within.last_id)
        rows, first, last = yield Script(code("count_rows"), [stream], words)
        if rows:
            found.append(DayBounds(number_of(first), number_of(last), rows))
            begin = b"(" + last
    return found


def _removed(keys: QueueKeys, day: int, within: DayBounds) -> HistorySteps[None]:
    """Remove the rows of a kind between two ids."""
    command = Script(code("remove_rows"), [keys.rows(day), keys.days], within[:2])
    while (yield command) == MOST_AT_ONCE:
        pass


def _id_of(row: SettledRow) -> int:
    return row.id


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

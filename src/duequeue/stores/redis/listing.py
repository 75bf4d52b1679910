"""Pages of live messages, and walks over the leases."""

from heapq import nsmallest
from typing import NamedTuple

from duequeue.message import State
from duequeue.port.listing import LAST, Position, Selection
from duequeue.port.store import ListedMessage, Steps
from duequeue.stores.redis.commands import MOST_AT_ONCE, MOST_BYTES, Caller, Word
from duequeue.stores.redis.packing import stored

PARTS = 6  # of a message in the reply


class SeenLease(NamedTuple):
    """The position of a leased message in due order, and its key."""

    position: Position
    key: str


class Leases:
    """The leases that were seen so far, in the order of their ends.

    A lease that begins or is extended in the meantime ends later than those that were seen. So it
    is seen too, unless it is shorter than others.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.seen: dict[int, SeenLease] = {}
        self.last: tuple[Word, Word] = ("", "")

    def see_all(self) -> Steps[None]:
        """Read the leases up to the last one."""
        count = MOST_AT_ONCE
        while count == MOST_AT_ONCE:
            reply = yield self._caller.script("leases", (*self.last, MOST_AT_ONCE))
            parts = iter(reply)
            page = list(zip(parts, parts, parts, parts, strict=True))
            for number, lease_end, due, key in page:
                self.last = (lease_end, number)
                self.seen[int(number)] = SeenLease(Position(int(due), int(number)), key.decode())
            count = len(page)


def listed(caller: Caller, selection: Selection, now: int) -> Steps[list[ListedMessage]]:
    """List messages, in several scripts if their payloads are large or few of them match."""
    window = selection.window(now)
    with_free = int(selection.state is not State.LEASED)
    with_leased = int(selection.state in {None, State.LEASED})
    after: Position | None = window.after
    found: list[ListedMessage] = []
    leases = Leases(caller)
    while after is not None and len(found) < selection.limit:
        most = min(selection.limit - len(found), MOST_AT_ONCE)
        which = (window.due_until, with_free, with_leased, selection.prefix, most, MOST_BYTES)
        matching = [
            position
            for position, key in leases.seen.values()
            if after < position <= (window.due_until, LAST) and key.startswith(selection.prefix)
        ]
        first = nsmallest(MOST_AT_ONCE, matching)
        horizon = first[-1] if len(first) < len(matching) else ("", "")
        ids = [position.id for position in first]
        reply = yield from caller.until_done(
            "list", (now, *after, *which, *leases.last, *horizon, *ids)
        )
        if not reply:
            yield from leases.see_all()
            continue
        due_at, number, *rest = reply
        after = Position(int(due_at), int(number)) if due_at else None
        parts = iter(rest)
        found += [
            ListedMessage(int(each), key.decode(), stored(*about))
            for each, key, *about in zip(*[parts] * PARTS, strict=True)
        ]
    return found

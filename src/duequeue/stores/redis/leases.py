"""Walks over the leases of one kind of message, a thousand in each script."""

from typing import NamedTuple

from duequeue.port.listing import Position
from duequeue.port.store import Steps
from duequeue.stores.redis.calling import MOST_AT_ONCE, Caller
from duequeue.stores.redis.commands import Word


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

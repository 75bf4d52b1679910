"""What is to be done when, each entry by its own clock."""

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

from duequeue.clock import Clock
from duequeue.instants import to_millis

Entry = TypeVar("Entry", bound=Hashable)

# A clock may be set, or go on while the machine is suspended: look at it again now and then.
LONGEST_WAIT = 60.0


class NextUp(NamedTuple, Generic[Entry]):
    """The entry whose time comes first, and for how many seconds to wait for it: 0 is now."""

    entry: Entry
    seconds: float


class Planned(NamedTuple):
    """When something is to be done by its clock, and when that was decided."""

    clock: Clock
    at: int
    planned_at: int


class Agenda(Generic[Entry]):
    """Entries and their next instants, in milliseconds. Whoever calls keeps others out."""

    def __init__(self) -> None:
        self._planned: dict[Entry, Planned] = {}

    def __contains__(self, entry: Entry) -> bool:
        return entry in self._planned

    def __len__(self) -> int:
        return len(self._planned)

    def plan(self, entry: Entry, clock: Clock, at: int) -> None:
        """Enter something for an instant; an entry is there once."""
        self._planned[entry] = Planned(clock, at, to_millis(clock.now(), "clock.now()"))

    def cancel(self, entry: Entry) -> None:
        """Strike an entry, if it is there."""
        self._planned.pop(entry, None)

    def next_up(self) -> NextUp[Entry] | None:
        """Return what comes first; None when nothing is planned."""
        waits = {entry: self._millis_left(entry) for entry in self._planned}
        if not waits:
            return None
        entry = min(waits, key=waits.__getitem__)
        return NextUp(entry, min(max(0, waits[entry]) / 1000, LONGEST_WAIT))

    def _millis_left(self, entry: Entry) -> int:
        clock, at, planned_at = self._planned[entry]
        now = to_millis(clock.now(), "clock.now()")
        return at - now if now >= planned_at else 0  # the clock was set back: plan anew

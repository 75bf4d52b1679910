"""An agenda of entries, each planned by its own clock."""

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

from duequeue.clock import Clock
from duequeue.instants import to_millis

Entry = TypeVar("Entry", bound=Hashable)

# A clock may be set, or go on while the machine is suspended, so it is read at least this often.
LONGEST_WAIT = 60.0


class NextUp(NamedTuple, Generic[Entry]):
    """The entry whose time comes first, and how many seconds are left until then."""

    entry: Entry
    seconds: float


class Planned(NamedTuple):
    """The instant for which an entry is planned, and the instant at which that was done."""

    clock: Clock
    at: int
    planned_at: int


class Agenda(Generic[Entry]):
    """Entries and their next instants, in milliseconds. Its calls must not overlap."""

    def __init__(self) -> None:
        self._planned: dict[Entry, Planned] = {}

    def __contains__(self, entry: Entry) -> bool:
        return entry in self._planned

    def __len__(self) -> int:
        return len(self._planned)

    def plan(self, entry: Entry, clock: Clock, at: int) -> None:
        """Plan an entry for an instant, in place of what was planned for it before."""
        self._planned[entry] = Planned(clock, at, to_millis(clock.now(), "clock.now()"))

    def cancel(self, entry: Entry) -> None:
        """Remove an entry, if it is there."""
        self._planned.pop(entry, None)

    def next_up(self) -> NextUp[Entry] | None:
        """Return the entry that comes first, or None when nothing is planned."""
        waits = {entry: self._millis_left(entry) for entry in self._planned}
        if not waits:
            return None
        entry = min(waits, key=waits.__getitem__)
        return NextUp(entry, min(max(0, waits[entry]) / 1000, LONGEST_WAIT))

    def due(self, clock: Clock) -> list[Entry]:
        """Return the entries of one clock whose time has come."""
        return [
            entry
            for entry, planned in self._planned.items()
            if planned.clock is clock and self._millis_left(entry) <= 0
        ]

    def _millis_left(self, entry: Entry) -> int:
        clock, at, planned_at = self._planned[entry]
        now = to_millis(clock.now(), "clock.now()")
        return at - now if now >= planned_at else 0  # it was set back

"""Overlapping offers cross to the store together.

A commit takes as long for one message as for a hundred. So while one caller's offer is under way,
those who come meanwhile wait on the bank, and the first of them takes all the others along on
the next crossing. Whoever comes alone goes at once.
"""

import threading
from collections.abc import Sequence

from duequeue.message import OfferOutcome
from duequeue.port.store import Record
from duequeue.wakeups.bell import Bell

MOST_FOLLOWERS = 99
# Nobody waits longer for a crossing that does not end: the next one begins beside it.
PATIENCE = 0.05


class Passenger:
    """A record on its way, and what became of it."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.bell = Bell()
        self.outcome: OfferOutcome | None = None
        self.stranded = False
        self.takes: list[Passenger] = []

    @property
    def waits(self) -> bool:
        """Whether it has neither arrived nor been left to itself."""
        return self.outcome is None and not self.stranded


class Ferry:
    """Who waits to cross, and whether somebody is crossing; safe from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bank: list[Passenger] = []
        self._aboard: list[Passenger] = []
        self._left_at = 0.0

    def wait(self, record: Record) -> Passenger:
        """Join those who wait."""
        passenger = Passenger(record)
        with self._lock:
            self._bank.append(passenger)
        return passenger

    def cast_off(self, leader: Passenger, now: float) -> list[Passenger]:
        """Take everybody who waits along; nobody, if the leader itself is not among them.

        Nor if the ferry left less than a while ago.
        """
        with self._lock:
            away = self._aboard and now < self._left_at + PATIENCE
            if away or leader not in self._bank:
                return []
            self._bank.remove(leader)
            leader.takes = self._aboard = [leader, *self._bank[:MOST_FOLLOWERS]]
            del self._bank[:MOST_FOLLOWERS]
            self._left_at = now
            return self._aboard

    def land(self, aboard: list[Passenger], outcomes: Sequence[OfferOutcome]) -> None:
        """Tell each passenger its outcome; those left without one must cross by themselves."""
        for passenger, outcome in zip(aboard, outcomes, strict=False):
            passenger.outcome = outcome
        for passenger in aboard:
            passenger.stranded = passenger.outcome is None
            passenger.bell.ring_all()
        with self._lock:
            if self._aboard is aboard:  # else another one left beside it
                self._aboard = []
            self._call_next()

    def leave(self, passenger: Passenger) -> None:
        """Give up, wherever one is; neither those taken along nor the next may miss it."""
        if passenger.takes:
            self.land(passenger.takes, [])
        with self._lock:
            if passenger in self._bank:
                self._bank.remove(passenger)
            self._call_next()

    def _call_next(self) -> None:
        if self._bank:
            self._bank[0].bell.ring_all()

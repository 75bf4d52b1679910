"""Where the next claim starts to look.

A claim that always began at the earliest message would walk again and again over the leased
and the just deleted ones. So the queues of one process remember the last row they claimed and
go on from there. Messages can still turn up before this mark: they were offered for an earlier
instant, their leases ran out, or their rows were committed late. An offer in this process lowers
the mark. For all other cases the mark is forgotten once per sweep interval, when a queue is
opened, when a lease of this process runs out, and when a claim finds nothing.
"""

import threading
from collections.abc import Iterable
from typing import NamedTuple

from duequeue.stores.sql.lease_ends import LeaseEnds

NEVER = 2**63 - 1


class Position(NamedTuple):
    """A place in due order."""

    due_at: int
    id: int


BEGINNING = Position(-NEVER - 1, 0)


class Start(NamedTuple):
    """Where a claim starts, and the version of the mark that it comes from."""

    position: Position
    version: int


class Claim(NamedTuple):
    """What a claim took: the token and number of its leases, and their end."""

    token: int
    leases: int
    until: int


class Watermark:
    """The mark of one kind of message in one process; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._position = BEGINNING
        self._version = 0
        self._looked_until = -NEVER
        self._swept_at = -NEVER
        self._lease_ends = LeaseEnds()

    def start_over(self) -> None:
        """Make the next claim look from the beginning."""
        with self._lock:
            self._swept_at = -NEVER

    def start(self, now: int, sweep_interval: int) -> Start:
        """Return where to look at `now`."""
        with self._lock:
            self._looked_until = max(self._looked_until, now)
            in_time = self._swept_at <= now < self._swept_at + sweep_interval
            if self._lease_ends.ran_out(now) or not in_time:
                self._forget(now)
            return Start(self._position, self._version)

    def sweep(self, now: int) -> Start:
        """Forget the mark, and look from the beginning."""
        with self._lock:
            self._forget(now)
            return Start(self._position, self._version)

    def claimed(self, start: Start, last: Position, claim: Claim) -> None:
        """Note a claim and its last row, unless the mark was lowered since the claim began."""
        with self._lock:
            self._lease_ends.add(claim.token, claim.leases, claim.until)
            if start.version == self._version:
                self._position = max(self._position, last)

    def extended(self, tokens: Iterable[int], until: int) -> None:
        """Note leases that end at another time, by the tokens of their claims."""
        with self._lock:
            for token in set(tokens):
                self._lease_ends.move(token, until)

    def settled(self, tokens: Iterable[int]) -> None:
        """Note leases that have ended, by the tokens of their claims."""
        with self._lock:
            self._lease_ends.settle(tokens)

    def lower(self, due_at: int) -> None:
        """Make sure that the next claims see what was just committed for `due_at`."""
        with self._lock:
            if due_at > self._looked_until:
                return  # no claim has come that far
            # This is needed even if the mark is lower, as a running claim may be about to raise it.
            self._version += 1
            self._position = min(self._position, Position(due_at, 0))

    def _forget(self, now: int) -> None:
        self._version += 1
        self._position = BEGINNING
        self._swept_at = now

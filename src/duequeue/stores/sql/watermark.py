"""Where the next claim starts to look.

A claim that always began at the earliest message would walk again and again over the leased
and the just deleted ones. So the queues of one process remember the last row they claimed and
go on from there. What may lie behind the mark: messages offered for an earlier instant, leases
that ran out, rows committed late. Whoever offers in this process lowers the mark; for the rest
it is forgotten once per sweep interval, when a known lease ends, and when a claim finds nothing.
"""

import threading
from typing import NamedTuple

NEVER = 2**63 - 1


class Position(NamedTuple):
    """A place in due order."""

    due_at: int
    id: int


BEGINNING = Position(-NEVER, 0)


class Start(NamedTuple):
    """Where a claim starts, and which version of the mark told it so."""

    position: Position
    version: int


class Watermark:
    """The mark of one kind of message in one process; safe from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._position = BEGINNING
        self._version = 0
        self._looked_until = -NEVER
        self._swept_at = -NEVER
        self._lease_ends_at = NEVER

    def start(self, now: int, sweep_interval: int) -> Start:
        """Return where to look at `now`."""
        with self._lock:
            self._looked_until = max(self._looked_until, now)
            sweep_at = min(self._swept_at + sweep_interval, self._lease_ends_at)
            if not self._swept_at <= now < sweep_at:
                self._forget(now)
            return Start(self._position, self._version)

    def sweep(self, now: int) -> Start:
        """Forget the mark, and look from the beginning."""
        with self._lock:
            self._forget(now)
            return Start(self._position, self._version)

    def advance(self, start: Start, to: Position, lease_ends_at: int) -> None:
        """Note the last row of a claim, unless the mark was lowered since the claim began."""
        with self._lock:
            self._lease_ends_at = min(self._lease_ends_at, lease_ends_at)
            if start.version == self._version:
                self._position = max(self._position, to)

    def lower(self, due_at: int) -> None:
        """Make sure that the next claims see what was just committed for `due_at`."""
        with self._lock:
            if due_at > self._looked_until:
                return  # no claim has come that far
            # Also when the mark is lower: a claim under way may be about to raise it.
            self._version += 1
            self._position = min(self._position, Position(due_at, 0))

    def _forget(self, now: int) -> None:
        self._version += 1
        self._position = BEGINNING
        self._swept_at = now
        self._lease_ends_at = NEVER

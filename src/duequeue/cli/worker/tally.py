"""The counts of a worker."""

from dataclasses import dataclass
from datetime import timedelta
from threading import Lock

from duequeue.events.events import Buried, Delivered, Event, Handled
from duequeue.verdict import Parked, Released


@dataclass(frozen=True)
class Tally:
    """Counts that can be added up; `lateness` is the sum over all first deliveries."""

    handled: int = 0
    failed: int = 0
    buried: int = 0
    first_deliveries: int = 0
    lateness: timedelta = timedelta(0)
    in_hand: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.handled + other.handled,
            self.failed + other.failed,
            self.buried + other.buried,
            self.first_deliveries + other.first_deliveries,
            self.lateness + other.lateness,
            self.in_hand + other.in_hand,
        )


@dataclass(frozen=True)
class WorkerReport:
    """The counts of a process, and what keeps it from working, if anything does."""

    tally: Tally
    problem: str = ""


class Counter:
    """A listener that counts events."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._handled = 0
        self._failed = 0
        self._buried = 0
        self._first_deliveries = 0
        self._lateness = timedelta(0)

    def __call__(self, event: Event) -> None:
        """Count one event."""
        match event:
            case Delivered(attempt=1, lateness=lateness):
                with self._lock:
                    self._first_deliveries += 1
                    self._lateness += lateness
            case Handled(verdict=verdict):
                with self._lock:
                    self._handled += 1
                    self._failed += isinstance(verdict, Released | Parked)
            case Buried():
                with self._lock:
                    self._buried += 1
            case _:
                pass

    def tally(self, in_hand: int) -> Tally:
        """Return the current counts."""
        with self._lock:
            return Tally(
                self._handled,
                self._failed,
                self._buried,
                self._first_deliveries,
                self._lateness,
                in_hand,
            )

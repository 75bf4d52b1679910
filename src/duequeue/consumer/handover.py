"""What a consumer has in hand, passed on from thread to thread."""

import threading
from time import monotonic
from typing import Generic, TypeVar

from duequeue.consumer.workload import Done, Workload
from duequeue.leased import LeasedMessage
from duequeue.verdict import Verdict

P = TypeVar("P", bound=LeasedMessage)  # type: ignore[type-arg] # any payload


class Handover(Generic[P]):
    """A workload behind a lock: the feeder adds, workers take and finish, the keeper settles."""

    def __init__(self, batch: int) -> None:
        self._load: Workload[P] = Workload(batch)
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._unsettled = threading.Condition(self._lock)
        self._nothing_runs = threading.Condition(self._lock)
        self._idle_workers = 0
        self._waking = False
        self._clock_moved = False
        self._last_round = False
        self.stopping = False

    @property
    def in_hand(self) -> int:
        """How many messages are fetched, running, or not settled yet."""
        return self._load.in_hand

    # The feeder's.

    def await_room(self) -> int:
        """Wait for room, and return how many messages to fetch; 0 once stopping."""
        with self._lock:
            while not self.stopping:
                if room := self._load.room():
                    return room
                self._room.wait()
        return 0

    def add(self, fetched: list[P], room: int) -> None:
        """Take in what was fetched into that room."""
        with self._lock:
            self._load.add(fetched, room)
            self._wake_a_worker()

    # The workers'.

    def next(self, handled: P | None = None, verdict: Verdict | None = None) -> P | None:
        """Take one message back and hand out the next, in one turn; None once stopping."""
        with self._lock:
            if handled is not None:
                self._finish(handled, verdict)
            while not self.stopping:
                if (message := self._load.take()) is not None:
                    if self._load.room():
                        self._room.notify()
                    self._wake_a_worker()
                    return message
                self._idle_workers += 1
                self._work.wait()
                self._idle_workers -= 1
                self._waking = False
        return None

    def _finish(self, handled: P, verdict: Verdict | None) -> None:
        self._load.finish(handled, verdict)
        if self._load.unsettled == 1:  # of any more the keeper knows
            self._unsettled.notify()
        if self._load.idle:
            self._nothing_runs.notify_all()

    def _wake_a_worker(self) -> None:
        """Wake one, which wakes the next when it has taken a message.

        All at once they would get into each other's way, and short handlers need but one.
        """
        if self._idle_workers and not self._waking and self._load.waiting:
            self._waking = True
            self._work.notify()

    # The keeper's.

    def await_unsettled(self, seconds: float) -> bool:
        """Wait for something to settle, or for so long; tell whether it is for the last time."""
        with self._lock:
            if not (self._last_round or self._load.unsettled or self._clock_moved):
                self._unsettled.wait(seconds)
            self._clock_moved = False
            return self._last_round

    def clock_moved(self) -> None:
        """Let the keeper look at its leases at once."""
        with self._lock:
            self._clock_moved = True
            self._unsettled.notify()

    def take_done(self) -> list[Done[P]]:
        """Hand over what is to be settled."""
        with self._lock:
            return self._load.take_done()

    def settled(self, group: list[Done[P]], *, done: bool) -> None:
        """Make room for others; what could not be settled comes back."""
        with self._lock:
            self._load.settled(group, done=done)
            self._room.notify()

    def held(self) -> list[P]:
        """Return what must not lose its lease."""
        with self._lock:
            return self._load.held()

    def lose(self, lost: list[P]) -> None:
        """Mark messages whose leases are gone, and do not begin them: there is room for others."""
        with self._lock:
            self._load.lose(lost)
            self._room.notify()

    # What stopping takes.

    def stop(self) -> bool:
        """Hand out nothing more; tell whether this is the first call."""
        with self._lock:
            first, self.stopping = not self.stopping, True
            self._wake_all()
            return first

    def end(self) -> None:
        """Stop, with nothing left to settle on."""
        with self._lock:
            self.stopping = self._last_round = True
            self._wake_all()

    def take_waiting(self) -> list[P]:
        """Hand over what nobody has begun to handle."""
        with self._lock:
            return self._load.take_waiting()

    def await_handlers(self, seconds: float, hard: threading.Event) -> None:
        """Wait until nothing runs, but not for longer, nor once it is to be hard."""
        gives_up_at = monotonic() + seconds
        with self._lock:
            while not self._load.idle and not hard.is_set():
                left = gives_up_at - monotonic()
                if left <= 0:
                    return
                self._nothing_runs.wait(left)

    def give_up_running(self) -> list[P]:
        """Take away what still runs, as lost; the keeper settles for the last time."""
        with self._lock:
            overdue = self._load.take_running()
            self._load.lose(overdue)
            self._last_round = True
            self._wake_all()
            return overdue

    def _wake_all(self) -> None:
        for condition in (self._work, self._room, self._unsettled, self._nothing_runs):
            condition.notify_all()

"""Passes a consumer's messages from thread to thread."""

import threading
from typing import Generic, TypeVar

from duequeue.consumer.late_handlers import LateHandlers
from duequeue.consumer.solitude import Caution
from duequeue.consumer.workload import Workload
from duequeue.leased import LeasedMessage
from duequeue.verdict import Verdict
from duequeue.wakeups.bell import wait_for

P = TypeVar("P", bound=LeasedMessage)


class Handover(Generic[P]):
    """A workload and its lock, which a `with` block holds; its end wakes those who can go on."""

    def __init__(
        self, batch: int, late: LateHandlers | None = None, caution: Caution[P] | None = None
    ) -> None:
        self.workload: Workload[P] = Workload(batch, late, caution)
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._unsettled = threading.Condition(self._lock)
        self._nothing_runs = threading.Condition(self._lock)
        self._stopping = threading.Event()
        self._hard = threading.Event()
        self._stopped = threading.Event()
        self._idle_workers = 0
        self._waking = False
        self._clock_moved = False

    def __enter__(self) -> Workload[P]:
        self._lock.acquire()
        return self.workload

    def __exit__(self, *raised: object) -> None:
        try:
            self._wake()
        finally:
            self._lock.release()

    def next(self, handled: P | None = None, verdict: Verdict | None = None) -> P | None:
        """Take one message back and return the next, under one lock.

        Return None if the consumer is stopping, or if another thread has replaced this one.
        """
        workload = self.workload
        with self._lock:
            if handled is not None and not self._finish(handled, verdict):
                return None
            while not workload.stopping:
                if (message := workload.take()) is not None:
                    if workload.room():
                        self._room.notify()
                    self._wake_a_worker()
                    return message
                self._idle_workers += 1
                self._work.wait()
                self._idle_workers -= 1
                self._waking = False
        return None

    def _finish(self, handled: P, verdict: Verdict | None) -> bool:
        goes_on = self.workload.finish(handled, verdict)
        if self.workload.unsettled == 1:  # the keeper is already awake for later ones
            self._unsettled.notify()
        if self.workload.idle:
            self._nothing_runs.notify()
        # Perhaps late handlers had occupied every thread, or this was the only message in hand.
        if (self.workload.late is not None or verdict is None) and self.workload.room():
            self._room.notify()
        return goes_on

    def _wake_a_worker(self) -> None:
        """Wake one worker, which wakes the next when it has taken a message.

        All at once they would contend for the lock, and short handlers need only one worker.
        """
        if self._idle_workers and not self._waking and self.workload.waiting:
            self._waking = True
            self._work.notify()

    def is_late(self, message: P) -> bool:
        """Return whether the handler of a message has run into the timeout."""
        with self._lock:
            late = self.workload.late
            return late is not None and late.is_late(id(message))

    def await_room(self) -> int:
        """Wait for room, and return how many messages to fetch; 0 once stopping."""
        with self._lock:
            while not self.workload.stopping:
                if room := self.workload.room():
                    return room
                self._room.wait()
        return 0

    def await_unsettled(self, seconds: float) -> bool:
        """Wait for a message to settle or for some time; return whether this is the last round."""
        with self._lock:
            workload = self.workload
            if not (workload.last_round or workload.unsettled or self._clock_moved):
                self._unsettled.wait(seconds)
            self._clock_moved = False
            return workload.last_round

    def look_again(self) -> None:
        """Go on after another consumer was alone; this may be called on any thread."""
        with self:
            pass  # its end wakes those who can go on

    def clock_moved(self) -> None:
        """Let the keeper look at its leases at once; this may be called on any thread."""
        with self._lock:
            self._clock_moved = True
            self._unsettled.notify()

    def await_handlers(self, seconds: float) -> None:
        """Wait until no handler runs, time is up, or a hard stop is requested."""
        with self._lock:
            # A loop in this block itself could leave it locked after a Ctrl-C; see `Pool`.
            self._nothing_runs.wait_for(lambda: self.workload.idle or self.workload.hard, seconds)

    def await_stopped(self) -> None:
        """Wait until the consumer has stopped."""
        while not self.workload.stopped:
            wait_for(self._stopped, 3600)

    def rest(self, seconds: float) -> None:
        """Let some time pass, or less if a stop begins or becomes hard."""
        wait_for(self._hard if self.workload.stopping else self._stopping, seconds)

    def _wake(self) -> None:
        workload = self.workload
        if workload.stopping:
            self._work.notify_all()
            self._stopping.set()
        self._wake_a_worker()
        if workload.stopping or workload.room():
            self._room.notify()
        if workload.last_round:
            self._unsettled.notify()
        if workload.hard or workload.idle:
            self._nothing_runs.notify()
        if workload.hard:
            self._hard.set()
        if workload.stopped:
            self._stopped.set()

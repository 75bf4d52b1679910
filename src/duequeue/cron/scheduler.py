"""The one thread in which a process runs all of its crons."""

import threading
from collections.abc import Callable
from contextlib import suppress

from duequeue.clock import Clock, ManualClock
from duequeue.cron.agenda import Agenda
from duequeue.errors import QueueClosed
from duequeue.process.shared import Shared
from duequeue.wakeups.bell import Bell

# Closing waits for a run in progress, but not for as long as a lost server may hold it up.
CLOSE_WITHIN = 5.0


class Entry:
    """Something to run again and again, at the instants in milliseconds that `run` returns."""

    def __init__(self, clock: Clock, run: Callable[[], int | None]) -> None:
        self.clock = clock
        self._run = run
        # Reentrant, because a payload's function may close the cron that called it.
        self._running = threading.RLock()
        self._closed = False

    def run(self) -> int | None:
        """Run unless closed, and return the instant of the next run, or None after the last."""
        with self._running:
            at = None
            with suppress(QueueClosed):
                at = None if self._closed else self._run()
            if at is None:
                self._closed = True
            return at

    def close(self) -> None:
        """Never run again, and wait for a run in progress to end."""
        self._closed = True
        if self._running.acquire(timeout=CLOSE_WITHIN):
            self._running.release()


class Scheduler:
    """Runs entries when their time comes, on a thread that begins and ends with them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bell = Bell()
        self._agenda: Agenda[Entry] = Agenda()
        self._unsubscribe: dict[Entry, Callable[[], None]] = {}
        self._thread: threading.Thread | None = None

    def __contains__(self, entry: Entry) -> bool:
        with self._lock:
            return entry in self._agenda

    def add(self, entry: Entry, at: int) -> None:
        """Run an entry at an instant, and from then on whenever it says."""
        with self._lock:
            self._agenda.plan(entry, entry.clock, at)
            if isinstance(entry.clock, ManualClock):
                self._unsubscribe[entry] = entry.clock.subscribe(self._bell.ring_all)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._work, name="duequeue-cron", daemon=True
                )
                self._thread.start()
        self._bell.ring_all()

    def run_now(self, entry: Entry) -> None:
        """Run an entry at once, on the calling thread, if it is still planned."""
        if entry in self:
            self._plan_again(entry, entry.run())
            self._bell.ring_all()

    def remove(self, entry: Entry) -> None:
        """Stop running an entry."""
        with self._lock:
            self._cancel(entry)
        self._bell.ring_all()
        entry.close()

    def _work(self) -> None:
        while True:
            heard = self._bell.rings
            with self._lock:
                next_up = self._agenda.next_up()
                if next_up is None:
                    self._thread = None
                    return
            if next_up.seconds > 0:
                self._bell.wait(heard, 0, next_up.seconds)
            else:
                self._plan_again(next_up.entry, next_up.entry.run())

    def _plan_again(self, entry: Entry, at: int | None) -> None:
        with self._lock:
            if at is None:
                self._cancel(entry)
            elif entry in self._agenda:
                self._agenda.plan(entry, entry.clock, at)

    def _cancel(self, entry: Entry) -> None:
        self._agenda.cancel(entry)
        unsubscribe = self._unsubscribe.pop(entry, None)
        if unsubscribe is not None:
            unsubscribe()


_schedulers = Shared(Scheduler)


def scheduler() -> Scheduler:
    """Return the scheduler of this process."""
    return _schedulers.get("the one")

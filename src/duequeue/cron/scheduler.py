"""The one thread in which a process runs all of its crons."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

from duequeue.clock import Clock, ManualClock
from duequeue.cron.agenda import Agenda
from duequeue.drive.actions import Action
from duequeue.errors import QueueClosed
from duequeue.flows.context import Context
from duequeue.process.shared import Shared
from duequeue.wakeups.bell import Bell

_this_thread = threading.local()

# Closing waits for a run in progress, but not for as long as a lost server may hold it up.
CLOSE_WITHIN = 5.0


class CronEntry:
    """Something to run again and again, at the instants in milliseconds that `run` returns."""

    def __init__(self, clock: Clock, run: Callable[[], int | None]) -> None:
        self.clock = clock
        self._run = run
        # Reentrant, because a payload's function may close the cron that called it.
        self.running = threading.RLock()
        self._closed = False

    def run(self) -> int | None:
        """Run unless closed, and return the instant of the next run, or None after the last.

        The caller holds `running`.
        """
        at = None
        with suppress(QueueClosed):
            at = None if self._closed else self._run()
        if at is None:
            self._closed = True
        return at

    def close(self) -> None:
        """Never run again, and wait for a run in progress to end."""
        self._closed = True
        if self.running.acquire(timeout=CLOSE_WITHIN):
            self.running.release()


class Scheduler:
    """Runs entries when their time comes, on a thread that begins and ends with them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bell = Bell()
        self._agenda: Agenda[CronEntry] = Agenda()
        self._unsubscribe: dict[CronEntry, Callable[[], None]] = {}
        self._thread: threading.Thread | None = None

    def __contains__(self, entry: CronEntry) -> bool:
        with self._lock:
            return entry in self._agenda

    def add(self, entry: CronEntry, at: int) -> None:
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

    def run_now(self, entry: CronEntry) -> None:
        """Run an entry at once, on the calling thread, if it is still planned."""
        if entry in self:
            with entry.running:
                self._run(entry)
            self._bell.ring_all()

    def run_due(self, clock: Clock) -> None:
        """Run the entries of a clock whose time has come, on the calling thread.

        A function of the user's that a run calls may use a queue, but must not start other runs.
        """
        if getattr(_this_thread, "runs", False):
            return
        with self._lock:
            due = self._agenda.due(clock)
        for entry in due:
            self._run_if_due(entry)

    def remove(self, entry: CronEntry) -> None:
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
                self._run_if_due(next_up.entry)

    def _run_if_due(self, entry: CronEntry) -> None:
        # If another thread runs it for very long, do not wait for that thread.
        if not entry.running.acquire(timeout=CLOSE_WITHIN):
            return
        try:
            with self._lock:
                due = entry in self._agenda.due(entry.clock)
            if due:
                self._run(entry)
        finally:
            entry.running.release()

    def _run(self, entry: CronEntry) -> None:
        """Run an entry and plan it again; meanwhile, the caller holds `running`."""
        outer, _this_thread.runs = getattr(_this_thread, "runs", False), True
        try:
            at = entry.run()
        finally:
            _this_thread.runs = outer
        with self._lock:
            if at is None:
                self._cancel(entry)
            elif entry in self._agenda:
                self._agenda.plan(entry, entry.clock, at)

    def _cancel(self, entry: CronEntry) -> None:
        self._agenda.cancel(entry)
        unsubscribe = self._unsubscribe.pop(entry, None)
        if unsubscribe is not None:
            unsubscribe()


_schedulers = Shared(Scheduler)

Perform: TypeAlias = Callable[[Action], object]


def after_due_crons(perform: Perform, context: Context[Any]) -> Perform:
    """Return `perform`, which first runs the crons that a clock moved by hand has made due.

    So a test that moves its clock finds the ticks, without waiting for a thread. Inside a caller's
    transaction nothing is run, because it might hold the locks that a run needs.
    """
    clock = context.clock
    if not isinstance(clock, ManualClock) or context.is_borrowed:
        return perform

    def perform_afterwards(action: Action) -> object:
        scheduler().run_due(clock)
        return perform(action)

    return perform_afterwards


def scheduler() -> Scheduler:
    """Return the scheduler of this process."""
    return _schedulers.get("the one")

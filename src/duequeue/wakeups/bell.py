"""Wakes those who wait for messages, in threads and in event loops."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic

NOTICE_SIGNALS_EVERY = 0.2


def wait_for(event: threading.Event, seconds: float) -> None:
    """Wait for an event, or for some time to pass.

    The system may hand a signal to any thread. Python answers it on the main thread, but only once
    that runs again, so a wait that the signal did not interrupt would sleep through it.
    """
    if threading.current_thread() is not threading.main_thread():
        event.wait(seconds)
        return
    gives_up_at = monotonic() + seconds
    while (left := gives_up_at - monotonic()) > 0:
        if event.wait(min(left, NOTICE_SIGNALS_EVERY)):
            return


class Bell:
    """Counts its rings, so that a ring between a look and a wait is not missed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[Callable[[], None], int] = {}
        self._informed: Counter[Callable[[int | None], None]] = Counter()
        self.rings = 0

    def ring(self, due_at: int | None) -> None:
        """Wake one of those who would look too late for a message due at `due_at`, if known.

        One is enough, because a consumer that finds something wakes the next.
        """
        with self._lock:
            for listener in self._informed:
                listener(due_at)
            self.rings += 1
            wake = self._first_too_late_for(due_at) if self._waiters else None
        if wake is not None:
            wake()

    def _first_too_late_for(self, due_at: int | None) -> Callable[[], None] | None:
        for wake, looks_at in self._waiters.items():
            if due_at is None or due_at < looks_at:
                return wake
        return None

    def ring_all(self) -> None:
        """Wake everybody who waits."""
        with self._lock:
            self.rings += 1
            waiters = list(self._waiters)
        for wake in waiters:
            wake()

    def inform(self, listener: Callable[[int | None], None]) -> None:
        """Call `listener` once with the due time of every ring, before anybody is woken by it."""
        with self._lock:
            self._informed[listener] += 1

    def stop_informing(self, listener: Callable[[int | None], None]) -> None:
        """Undo one `inform`."""
        with self._lock:
            self._informed[listener] -= 1
            if not self._informed[listener]:
                del self._informed[listener]

    def wait(self, heard: int, looks_at: int, seconds: float) -> None:
        """Block until a ring that matters after the first `heard`, or until the seconds are over.

        `looks_at` is the instant, in milliseconds, at which the caller looks again anyway.
        """
        event = threading.Event()
        with self._waiting(event.set, looks_at):
            if self.rings == heard:
                wait_for(event, seconds)

    async def wait_async(self, heard: int, looks_at: int, seconds: float) -> None:
        """Do the same as `wait`, awaiting."""
        event = asyncio.Event()
        loop = asyncio.get_running_loop()
        with self._waiting(lambda: _wake(loop, event), looks_at):
            if self.rings == heard:
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await event.wait()

    @contextmanager
    def _waiting(self, wake: Callable[[], None], looks_at: int) -> Iterator[None]:
        with self._lock:
            self._waiters[wake] = looks_at
        try:
            yield
        finally:
            with self._lock:
                del self._waiters[wake]


def _wake(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the loop was closed between ringing and waking
        loop.call_soon_threadsafe(event.set)

"""The wake-ups of a queue for clients that wait by themselves, as `Queue.open("http://…")` does."""

import asyncio
import secrets
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from threading import Lock
from typing import NamedTuple

from duequeue.flows.context import Context
from duequeue.port.remote import WakeUp

# A client that has missed more rings than these gets a wake-up without a due time.
REMEMBERED = 100
# For this many seconds, a client that was woken still counts as waiting, as it is about to look.
LOOKS_WITHIN = 1.0

_sender: ContextVar[str] = ContextVar("sender", default="")


class Ring(NamedTuple):
    """One ring of the bell: its number, who caused it, and for when, or for which responses."""

    number: int
    sender: str
    due_at: int | None
    answered: Collection[str] = ()


@contextmanager
def caused_by(sender: str) -> Iterator[None]:
    """Have the rings of this block wake everybody but their sender."""
    before = _sender.set(sender)
    try:
        yield
    finally:
        _sender.reset(before)


class Waiter:
    """A request that waits for a ring, perhaps only for responses; others may stop it."""

    def __init__(self, sender: str, *, answers_only: bool = False) -> None:
        self.sender = sender
        self.answers_only = answers_only
        self.loop = asyncio.get_running_loop()
        self.woken = asyncio.Event()

    def heeds(self, ring: Ring) -> bool:
        """Return whether a ring is for this client."""
        return ring.sender != self.sender and (bool(ring.answered) or not self.answers_only)

    def stop(self) -> None:
        """Stop waiting; this may come from any thread."""
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self.loop.call_soon_threadsafe(self.woken.set)


class WakeUps:
    """What rang on one queue, and who waits for more."""

    def __init__(self, context: Context[bytes]) -> None:
        self._context = context
        self._source = secrets.token_hex(8)
        self._rings: deque[Ring] = deque(maxlen=REMEMBERED)
        self._heard = 0
        self._lock = Lock()
        self._waiters: set[Waiter] = set()
        context.bell.inform(self._on_ring)
        context.awaited.inform(self._on_answer)

    def close(self) -> None:
        """Hear no more rings, because the bells outlive a queue that others have open too."""
        self._context.bell.stop_informing(self._on_ring)
        self._context.awaited.stop_informing(self._on_answer)

    @contextmanager
    def heard_by(self, waiter: Waiter) -> Iterator[None]:
        """Wake a client for every ring from now on, so that it misses none after a look."""
        with self._lock:
            self._waiters.add(waiter)
        try:
            yield
        finally:
            with self._lock:
                self._waiters.discard(waiter)

    def since(self, source: str, heard: int, waiter: Waiter) -> WakeUp:
        """Return what a client has missed."""
        with self._lock:
            last, rings = self._heard, tuple(self._rings)
        if source != self._source or heard < last - REMEMBERED:
            return WakeUp(self._source, last, rang=True)
        missed = [ring for ring in rings if ring.number > heard and waiter.heeds(ring)]
        dues = [ring.due_at for ring in missed if not ring.answered]
        due_at = None if None in dues else min(filter(None, dues), default=None)
        answered = [key for ring in missed for key in ring.answered]
        return WakeUp(self._source, last, bool(dues), due_at, answered)

    async def wait(self, waiter: Waiter, seconds: float) -> None:
        """Wait until the bell has rung for this client, or until the time is over."""
        polling = ExitStack()
        alerts = self._context.alerts
        if alerts is not None:
            if alerts.waiting is not None:
                polling.enter_context(alerts.waiting())
            alerts.listen(seconds)
            alerts.listen(seconds, for_answers=True)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await waiter.woken.wait()
        finally:
            waiter.loop.call_later(LOOKS_WITHIN, polling.close)

    def _on_ring(self, due_at: int | None) -> None:
        """Note a ring, which may come from any thread."""
        self._note(due_at)

    def _on_answer(self, keys: Collection[str]) -> None:
        """Note news of responses, which may come from any thread."""
        self._note(None, keys)

    def _note(self, due_at: int | None, answered: Collection[str] = ()) -> None:
        with self._lock:
            self._heard += 1
            ring = Ring(self._heard, _sender.get(), due_at, answered)
            self._rings.append(ring)
            waiters = tuple(self._waiters)
        for waiter in waiters:
            if waiter.heeds(ring):
                waiter.stop()

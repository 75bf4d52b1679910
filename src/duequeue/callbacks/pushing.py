"""Posts messages to the endpoints of a database until it is stopped.

Any number of processes may do so at a time, because each message is leased by one of them.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Self

from duequeue import defaults
from duequeue.callbacks.failures import words_about
from duequeue.callbacks.guard import Guard
from duequeue.callbacks.lane import Lane
from duequeue.callbacks.notes import Notes
from duequeue.callbacks.posting import Poster
from duequeue.callbacks.queue_push import QueuePush
from duequeue.callbacks.rate import Slots
from duequeue.callbacks.records import Records, StoredEndpoint, open_records
from duequeue.callbacks.waits import Changes
from duequeue.errors import DueQueueError, InvalidArgument
from duequeue.instants import span_to_millis
from duequeue.parts import AsyncParts, QueueSettings
from duequeue.payloads.stored_bytes import CheckedBytes

logger = logging.getLogger("duequeue.push")

# How often a process looks for endpoints that others have changed, without a wake-up.
LOOK_SECONDS = 15.0


class Push:
    """The push process: it follows the endpoints, and has one `QueuePush` for each queue."""

    def __init__(
        self, settings: QueueSettings, poster: Poster, records: AsyncParts[bytes], calls: int
    ) -> None:
        self._settings = settings
        self._poster = poster
        self._endpoints = records
        self._records = Records(records.queue, records.context)
        self._slots = Slots(calls)
        self._pushes: dict[tuple[str, str], tuple[AsyncParts[bytes], QueuePush]] = {}
        self._endings: dict[asyncio.Task[None], QueuePush] = {}  # of queues without endpoints
        self._closing: list[QueuePush] = []
        self._hurried = False
        self._notes = Notes(self._records, records.context.now)
        self._changes = Changes()
        self._watching: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, settings: QueueSettings, poster: Poster, calls: int = defaults.CALLS
    ) -> "Push":
        """Begin to push; raise if the store is not available."""
        Slots(calls)
        opened = await open_records(settings)
        push = cls(settings, poster, opened, calls)
        try:
            await push._look()
        except BaseException:
            await push.close(0)
            raise
        opened.context.bell.inform(push._changes.note_from_anywhere)
        push._watching = asyncio.create_task(push._watch())
        return push

    async def close(self, seconds: float = defaults.GRACE.total_seconds()) -> None:
        """Let calls end within some seconds, give everything else back, and close the queues."""
        if self._watching is not None:
            self._endpoints.context.bell.stop_informing(self._changes.note_from_anywhere)
            self._watching.cancel()
            await asyncio.wait([self._watching])
        pushes, self._pushes = list(self._pushes.values()), {}
        self._closing = [*(push for _, push in pushes), *self._endings.values()]
        if self._hurried:
            self.hurry()
        await asyncio.gather(
            *(self._end(*each, seconds) for each in pushes),
            *(push.stop(seconds) for push in self._endings.values()),
        )
        if self._endings:
            await asyncio.wait(self._endings)
        await self._notes.close()
        await self._endpoints.close()

    def lanes(self) -> list[Lane]:
        """Return the endpoints, as this process sees them."""
        return [lane for _, push in self._pushes.values() for lane in push.lanes]

    def hurry(self) -> None:
        """Give calls no time to end, whether `close` was called already or not."""
        self._hurried = True
        for push in self._closing:
            push.hurry()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def _watch(self) -> None:
        alerts = self._endpoints.context.alerts
        while True:
            if alerts is not None:
                alerts.listen(LOOK_SECONDS)
            await self._changes.wait(LOOK_SECONDS)
            try:
                await self._look()
            except Exception as error:  # noqa: BLE001 - the next look may succeed
                logger.warning("could not look for endpoints: %s", words_about(error))

    async def _look(self) -> None:
        """Start what others have defined, and stop what they have removed."""
        async with self._notes.lock:
            by_queue: dict[tuple[str, str], list[StoredEndpoint]] = {}
            for entry in (await self._records.all()).values():
                by_queue.setdefault(entry.endpoint.kind, []).append(entry)
            for kind in self._pushes.keys() - by_queue.keys():
                self._end_alone(*self._pushes.pop(kind))
            for kind, entries in by_queue.items():
                if kind in self._pushes:
                    self._pushes[kind][1].update(entries)
                else:
                    await self._try_to_begin(kind, entries)
        self._notes.repeat()

    async def _look_for(self, kind: tuple[str, str]) -> Collection[str] | None:
        """Read the endpoints again, as a message has none; return which ones cannot be read.

        Return None if it is not certain which endpoints the queue has.
        """
        async with self._notes.lock:
            try:
                found = await self._records.find_all()
            except DueQueueError:
                return None
            entries = [each for each in found.entries.values() if each.endpoint.kind == kind]
            if not entries or kind not in self._pushes:
                self._changes.note()
                return None
            self._pushes[kind][1].update(entries)
            return found.unreadable

    async def _try_to_begin(self, kind: tuple[str, str], entries: list[StoredEndpoint]) -> None:
        """Begin to push a queue; one that cannot be opened must not hold up the others."""
        try:
            await self._begin(kind, entries)
        except Exception as error:  # noqa: BLE001 - the next look may succeed
            logger.warning("queue %r could not be opened: %s", kind[0], words_about(error))

    async def _begin(self, kind: tuple[str, str], entries: list[StoredEndpoint]) -> None:
        name, type_name = kind
        opened = await self._settings.open(name, CheckedBytes(type_name))
        push = QueuePush(
            opened,
            self._poster,
            self._slots,
            entries,
            look=partial(self._look_for, kind),
            on_change=self._notes.on_change,
        )
        self._pushes[kind] = opened, push

    def _end_alone(self, opened: AsyncParts[bytes], push: QueuePush) -> None:
        """End the push of a queue without endpoints, while everything else goes on."""
        push.update([])
        task = asyncio.create_task(self._end(opened, push, defaults.GRACE.total_seconds()))
        self._endings[task] = push
        task.add_done_callback(self._endings.pop)

    async def _end(self, opened: AsyncParts[bytes], push: QueuePush, seconds: float) -> None:
        await push.stop(seconds)
        await opened.close()


@dataclass(frozen=True)
class PushSettings:
    """The settings of a push process; `grace` is for calls that still run when it stops.

    Without a guard, its policy is `public` in a server with a file of tokens, else `metadata`.
    """

    guard: Guard | None = None
    proxy: str | None = field(default=None, repr=False)
    calls: int = defaults.CALLS
    grace: timedelta = defaults.GRACE

    def __post_init__(self) -> None:
        Slots(self.calls)
        if span_to_millis(self.grace, "grace") < 0:
            raise InvalidArgument("grace", f"must not be negative, but it is {self.grace}")

    @asynccontextmanager
    async def running(self, store: QueueSettings) -> AsyncIterator[Push]:
        """Push until the end of the block."""
        async with Poster(self.guard or Guard(), proxy=self.proxy) as poster:
            push = await Push.start(store, poster, self.calls)
            try:
                yield push
            finally:
                await push.close(self.grace.total_seconds())

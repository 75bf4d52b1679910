"""The queues that the server has open, each from its first request on."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial
from typing import Any, TypeVar

from duequeue.backends import backend_for
from duequeue.drive.running import run_async
from duequeue.flows.context import Context
from duequeue.flows.opening import Opening
from duequeue.parts import AsyncParts, QueueSettings
from duequeue.payloads.stored_bytes import CheckedBytes, StoredBytes
from duequeue.port.history_table import HistoryTable
from duequeue.port.store import AsyncSession, Backend, Counts, Operation, Store
from duequeue.process.contact import contact_with
from duequeue.queue_async import AsyncQueue
from duequeue.retry_policy import RetryPolicy
from duequeue.server.limits import Limits
from duequeue.server.lookouts import Lookouts
from duequeue.server.metrics import Meter
from duequeue.server.reads import ReadingSession, reading
from duequeue.server.wakeups import WakeUps

R = TypeVar("R")

# Clients open a queue with different poll intervals, but hardly with more than this many.
MOST_PORT_STORES = 100
# A client that gets no answer for longer may give up, so the server gives up first and says why.
RETRY = RetryPolicy(budget=timedelta(seconds=10))


class ServedQueue(AsyncParts[bytes]):
    """One queue: `queue` shows payloads that cannot be decoded, and polls through `context` bury
    them. `looking` is for what only reads, and `users` counts the requests that are under way."""

    def __init__(
        self,
        backend: Backend,
        context: Context[bytes],
        session: AsyncSession,
        type_name: str,
        meter: Meter,
        limits: Limits,
    ) -> None:
        super().__init__(backend, context, session, StoredBytes(type_name))
        self.name = context.name
        self.type_name = type_name
        self.kind = f"{context.name}|{type_name}"
        self.users = 0
        self.exists = True
        self.meter = meter
        self.lookouts = Lookouts()
        self._port_stores: dict[tuple[int, bool], Store] = {}
        shown = replace(context, codec=StoredBytes(type_name))
        self.reading = ReadingSession(backend, limits)
        self.looking: AsyncQueue[bytes] = AsyncQueue(backend, reading(shown, limits), self.reading)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the queue open until the block ends."""
        self.users += 1
        try:
            yield
        finally:
            self.users -= 1

    @cached_property
    def wake_ups(self) -> WakeUps:
        """The wake-ups for clients that wait by themselves."""
        return WakeUps(self.context)

    async def port_store(self, sweep_interval: int, *, history: bool) -> Store:
        """Return the store as a client in Python has opened it, if its settings count."""
        found = self._port_stores.get((sweep_interval, history))
        return found or await self.open_port_store(sweep_interval, history=history)

    async def open_port_store(self, sweep_interval: int, *, history: bool) -> Store:
        """Open the store for a client in Python."""
        if len(self._port_stores) >= MOST_PORT_STORES:
            self._port_stores.clear()
        open_store = partial(
            self.backend.open_store, self.kind, sweep_interval, migrate=True, history=history
        )
        opened = await self.session.run(open_store)
        found = self._port_stores[sweep_interval, history] = self.meter.metered(self.name, opened)
        return found

    def patient_for(self, wait: timedelta) -> Context[bytes]:
        """Return the context of a request that waits, which an outage meanwhile does not end."""
        if wait <= RETRY.budget:
            return self.context
        return replace(self.context, retry=RetryPolicy(budget=wait))

    async def count(self) -> Counts:
        """Count the messages by state, as of now."""
        return await self.reading.run(partial(self.context.store.counts, self.context.now()))

    async def close(self) -> None:
        """Close the queue, and give its connections back."""
        if "wake_ups" in vars(self):
            self.wake_ups.close()
        await super().close()
        await self.reading.close()


class Queues:
    """Opens queues when they are first asked for, and closes those that were not used for long."""

    def __init__(self, settings: QueueSettings, limits: Limits, meter: Meter) -> None:
        self.settings = settings
        self.meter = meter
        self._limits = limits
        self._most = limits.open_queues
        self._open: dict[tuple[str, str], asyncio.Task[ServedQueue]] = {}
        self._opened_by: dict[tuple[str, str], str] = {}
        self._informed: set[asyncio.Event] = set()
        self._backend = backend_for(settings.url)
        self._opening(self._backend, "any", "json")  # raises now if a setting is not valid
        self._session: AsyncSession | None = None
        self._reading: AsyncSession | None = None
        self._starting: asyncio.Task[HistoryTable] | None = None

    @property
    def backend(self) -> Backend:
        """The store of all queues."""
        return self._backend

    @property
    def address(self) -> str:
        """Where the store is, without secrets."""
        return self._backend.address

    @property
    def place(self) -> str:
        """What distinguishes the store from others in this process."""
        return self._backend.place

    @property
    def opened(self) -> list[ServedQueue]:
        """The queues that are open now."""
        tasks = [each for each in self._open.values() if each.done() and not each.cancelled()]
        return [each.result() for each in tasks if each.exception() is None]

    async def start(self) -> HistoryTable:
        """Make the tables ready, once; raise if the store is not available."""
        if self._starting is None or (self._starting.done() and _has_failed(self._starting)):
            self._starting = asyncio.create_task(self._start())
        return await asyncio.shield(self._starting)

    async def get(self, name: str, type_name: str, token: str = "") -> ServedQueue:
        """Return an open queue, which the caller must count as used before it awaits anything.

        The id of a token says for whom it is opened.
        """
        place = (name, type_name)
        while True:
            found = self._open.pop(place, None)
            if found is None or (found.done() and _has_failed(found)):
                found = asyncio.create_task(self._open_one(self.settings.url, name, type_name))
                found.add_done_callback(self._inform)
                self._opened_by[place] = token
            self._open[place] = found  # the last one in the dict was used last
            queue = found.result() if found.done() else await asyncio.shield(found)
            if self._open.get(place) is found:  # else somebody has closed it meanwhile
                break
        if len(self._open) > self._most:
            with queue.in_use():
                await self._close_idle(self._to_be_closed(token))
        return queue

    @asynccontextmanager
    async def using(self, name: str, type_name: str) -> AsyncIterator[ServedQueue]:
        """Keep a queue open until the block ends."""
        queue = await self.get(name, type_name)
        with queue.in_use():
            yield queue

    async def knows(self, name: str, type_name: str) -> bool:
        """Return whether the database has a queue."""
        return (name, type_name) in self._open or (name, type_name) in await self.kinds()

    async def empty(self, name: str, type_name: str) -> ServedQueue:
        """Return an empty queue in memory, which stands for one that does not exist yet."""
        found = await self._open_one(f"memory:{secrets.token_hex(16)}", name, type_name)
        found.exists = False
        return found

    @contextmanager
    def informing(self, event: asyncio.Event) -> Iterator[None]:
        """Set an event whenever a queue was opened here, perhaps for the first time."""
        self._informed.add(event)
        try:
            yield
        finally:
            self._informed.discard(event)

    async def run(self, operation: Operation[R]) -> R:
        """Run an operation that concerns the whole database."""
        await self.start()
        return await self._run(operation)

    async def read(self, operation: Operation[R]) -> R:
        """Run an operation that only reads, and concerns the whole database."""
        await self.start()
        assert self._reading is not None  # noqa: S101 - it has started
        return await run_async(self._reading, operation, RETRY)

    async def look(
        self, operation: Operation[R], retry: RetryPolicy, seconds: float | None = None
    ) -> R:
        """Run an operation that concerns the whole database, in tries of so many seconds."""
        await self.start()
        assert self._session is not None  # noqa: S101 - it has started
        contact = contact_with(self.place, self.address)
        return await run_async(self._session, operation, retry, seconds, contact)

    async def kinds(self) -> list[tuple[str, str]]:
        """Return the name and the payload type of every queue that the database has."""
        found = await self.run(self._backend.kinds)
        pairs = [kind.partition("|") for kind in found]
        return sorted((name, type_name) for name, _, type_name in pairs)

    async def count_types(self, name: str, most: int) -> dict[str, int]:
        """Return the payload types of a name; see `Backend.count_types`."""
        return await self.run(partial(self._backend.count_types, name, most))

    async def close(self) -> None:
        """Close every queue, and give the connections back."""
        tasks = list(self._open.values())
        self._open.clear()
        self._opened_by.clear()
        for task in tasks:
            await asyncio.wait([task])
            if not _has_failed(task):
                await task.result().close()
        for session in (self._session, self._reading):
            if session is not None:
                await session.close()
        self._session = self._reading = self._starting = None

    def _inform(self, _: object) -> None:
        for event in self._informed:
            event.set()

    async def _start(self) -> HistoryTable:
        if self._session is None:
            self._session = self._backend.async_session()
            self._reading = ReadingSession(self._backend, self._limits)
        return await self._run(lambda: self._backend.open_history(migrate=True))

    async def _run(self, operation: Operation[R]) -> R:
        assert self._session is not None  # noqa: S101 - the caller has started
        return await run_async(self._session, operation, RETRY)

    async def _open_one(self, url: str, name: str, type_name: str) -> ServedQueue:
        checked = self._opening(backend_for(url), name, type_name)
        await self.start()  # so that the tables of a store in memory outlive this queue
        context, session = await checked.open_async(partial(self.meter.metered, name))
        return ServedQueue(checked.backend, context, session, type_name, self.meter, self._limits)

    def _opening(self, backend: Backend, name: str, type_name: str) -> Opening[bytes]:
        settings = replace(self.settings, retry=RETRY)
        return settings.opening(name, CheckedBytes(type_name), backend)

    def _to_be_closed(self, token: str) -> list[tuple[str, str]]:
        """Return what to close first, in turn: what was not used for the longest time.

        A token for which more than half of the queues were opened makes room with its own.
        """
        own = [place for place in self._open if self._opened_by[place] == token]
        return own if len(own) > self._most // 2 else list(self._open)

    async def _close_idle(self, places: list[tuple[str, str]]) -> None:
        for place in places:
            if len(self._open) <= self._most:
                return
            task = self._open.get(place)
            if task is None:
                continue  # another request has closed it
            if task.done() and (_has_failed(task) or task.result().users == 0):
                del self._open[place], self._opened_by[place]
                if not _has_failed(task):
                    if all(name != place[0] for name, _ in self._open):
                        self.meter.forget(place[0])  # its other payload types count there too
                    await task.result().close()


def _has_failed(task: "asyncio.Task[Any]") -> bool:
    return task.cancelled() or task.exception() is not None

"""The one task in which an event loop runs all of its crons."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from duequeue.clock import Clock, ManualClock
from duequeue.cron.agenda import Agenda
from duequeue.cron.scheduler import CLOSE_WITHIN
from duequeue.drive.actions import Action
from duequeue.errors import QueueClosed
from duequeue.flows.context import Context
from duequeue.wakeups.bell import Bell


class AsyncCronEntry:
    """Something to run again and again, at the instants in milliseconds that `run` returns."""

    def __init__(self, clock: Clock, run: Callable[[], Awaitable[int | None]]) -> None:
        self.clock = clock
        self._run = run
        self.running = asyncio.Lock()
        self._closed = False

    async def run(self) -> int | None:
        """Run unless closed, and return the instant of the next run, or None after the last.

        The caller holds `running`.
        """
        at = None
        with suppress(QueueClosed):
            at = None if self._closed else await self._run()
        if at is None:
            self._closed = True
        return at

    async def close(self) -> None:
        """Never run again, and wait for a run in progress to end."""
        self._closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN), self.running:
                pass


class AsyncScheduler:
    """Runs entries when their time comes, in a task that begins and ends with them."""

    def __init__(self) -> None:
        self._bell = Bell()
        self._agenda: Agenda[AsyncCronEntry] = Agenda()
        self._unsubscribe: dict[AsyncCronEntry, Callable[[], None]] = {}
        self._task: asyncio.Task[None] | None = None

    def __contains__(self, entry: AsyncCronEntry) -> bool:
        return entry in self._agenda

    def add(self, entry: AsyncCronEntry, at: int) -> None:
        """Run an entry at an instant, and from then on whenever it says."""
        self._agenda.plan(entry, entry.clock, at)
        if isinstance(entry.clock, ManualClock):
            self._unsubscribe[entry] = entry.clock.subscribe(self._bell.ring_all)
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="duequeue-cron")
        self._bell.ring_all()

    async def run_now(self, entry: AsyncCronEntry) -> None:
        """Run an entry at once, in the calling task, if it is still planned."""
        if entry in self:
            async with entry.running:
                await self._run(entry)
            self._bell.ring_all()

    async def run_due(self, clock: Clock) -> None:
        """Run the entries of a clock whose time has come, in the calling task."""
        for entry in self._agenda.due(clock):
            await self._run_if_due(entry)

    async def remove(self, entry: AsyncCronEntry) -> None:
        """Stop running an entry."""
        self._cancel(entry)
        self._bell.ring_all()
        await entry.close()

    async def _work(self) -> None:
        try:
            while True:
                heard = self._bell.rings
                next_up = self._agenda.next_up()
                if next_up is None:
                    return
                if next_up.seconds > 0:
                    await self._bell.wait_async(heard, 0, next_up.seconds)
                else:
                    await self._run_if_due(next_up.entry)
        finally:
            self._task = None

    async def _run_if_due(self, entry: AsyncCronEntry) -> None:
        async with entry.running:
            if entry in self._agenda.due(entry.clock):
                await self._run(entry)

    async def _run(self, entry: AsyncCronEntry) -> None:
        """Run an entry and plan it again; meanwhile, the caller holds `running`."""
        at = await entry.run()
        if at is None:
            self._cancel(entry)
        elif entry in self._agenda:
            self._agenda.plan(entry, entry.clock, at)

    def _cancel(self, entry: AsyncCronEntry) -> None:
        self._agenda.cancel(entry)
        unsubscribe = self._unsubscribe.pop(entry, None)
        if unsubscribe is not None:
            unsubscribe()


_schedulers: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncScheduler] = WeakKeyDictionary()


def scheduler() -> AsyncScheduler:
    """Return the scheduler of the running event loop."""
    return _schedulers.setdefault(asyncio.get_running_loop(), AsyncScheduler())


AsyncPerform: TypeAlias = Callable[[Action], Awaitable[object]]


def after_due_crons(perform: AsyncPerform, context: Context[Any]) -> AsyncPerform:
    """Return `perform`, which first runs the crons that a clock moved by hand has made due.

    So a test that moves its clock finds the ticks, without waiting for a task. Inside a caller's
    transaction nothing is run, because it might hold the locks that a run needs.
    """
    clock = context.clock
    if not isinstance(clock, ManualClock) or context.is_borrowed:
        return perform

    async def perform_afterwards(action: Action) -> object:
        await scheduler().run_due(clock)
        return await perform(action)

    return perform_afterwards

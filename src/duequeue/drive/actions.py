"""What a flow may ask of the face that runs it, and the faces' two ways of doing it.

A flow is a generator like a store's steps, one level up: it yields whole operations and waits.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Generator
from time import monotonic
from typing import Any, NamedTuple, TypeAlias, TypeVar

from duequeue.backoff import RetryPolicy
from duequeue.drive.steps import drive, drive_async
from duequeue.errors import StoreUnavailable
from duequeue.port.store import AsyncSession, Operation, Session
from duequeue.wakeups.bell import Bell
from duequeue.wakeups.waiting import wait_for

T = TypeVar("T")

logger = logging.getLogger("duequeue")

# A call that is retried for longer says so once: whoever waits for it should know what for.
SILENT_SECONDS = 1.0

Flow: TypeAlias = Generator["Action", Any, T]


class Run(NamedTuple):
    """Run one operation of the store, in one try."""

    operation: Operation[Any]


class Pause(NamedTuple):
    """Let some time pass."""

    seconds: float


class Listen(NamedTuple):
    """Wait for the bell, or for some time to pass."""

    bell: Bell
    heard: int
    looks_at: int
    seconds: float


class Apart(NamedTuple):
    """Run a flow on behalf of others too: it goes on if whoever asked for it is cancelled."""

    flow: "Flow[None]"


Action: TypeAlias = Run | Pause | Listen | Apart


def retrying(policy: RetryPolicy, operation: Operation[T]) -> Flow[T]:
    """Run an operation, and again while the store is unavailable and the budget lasts."""
    pauses = policy.pauses()
    silent_until: float | None = monotonic() + SILENT_SECONDS
    while True:
        try:
            result: T = yield Run(operation)
        except StoreUnavailable as error:
            pause = next(pauses, None)
            if pause is None:
                raise
            if silent_until is not None and monotonic() >= silent_until:
                logger.warning("%s; trying again, for %s in all", error, policy.budget)
                silent_until = None
        else:
            return result
        yield Pause(pause)


def performer(session: Session) -> Callable[[Action], object]:
    """Return the function that carries out one action, blocking."""

    def perform(action: Action) -> object:
        match action:
            case Run(operation):
                return session.run(operation)
            case Pause(seconds):
                wait_for(threading.Event(), seconds)
            case Listen(bell, heard, looks_at, seconds):
                bell.wait(heard, looks_at, seconds)
            case Apart(flow):
                drive(flow, perform)
        return None

    return perform


def performer_async(session: AsyncSession) -> Callable[[Action], Awaitable[object]]:
    """Return the function that carries out one action, awaiting."""

    apart: set[asyncio.Task[None]] = set()  # the event loop alone would not keep them

    async def perform(action: Action) -> object:
        match action:
            case Run(operation):
                return await session.run(operation)
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Listen(bell, heard, looks_at, seconds):
                await bell.wait_async(heard, looks_at, seconds)
            case Apart(flow):
                task = asyncio.create_task(drive_async(flow, perform))
                apart.add(task)
                task.add_done_callback(apart.discard)
                await asyncio.shield(task)
        return None

    return perform

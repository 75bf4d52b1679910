"""The actions that a flow may yield, and the two ways to carry them out.

A flow is a generator like a store's steps, one level up: it yields whole operations and waits.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

from duequeue.drive.steps import drive, drive_async
from duequeue.port.store import AsyncSession, Operation, Session
from duequeue.wakeups.bell import Bell, wait_for

T = TypeVar("T")

Flow: TypeAlias = Generator["Action", Any, T]


class Run(NamedTuple):
    """Run one operation of the store, in one try; see `Session.run`."""

    operation: Operation[Any]
    seconds: float
    consumes: bool


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
    """Run a flow on behalf of others too; it goes on if its first caller is cancelled."""

    flow: "Flow[None]"


Action: TypeAlias = Run | Pause | Listen | Apart


def unchecked() -> None:
    """Check nothing, for a session that has only one user."""


def performer(
    session: Session, check: Callable[[], None] = unchecked
) -> Callable[[Action], object]:
    """Return the function that carries out one action, blocking.

    Before each action, `check` raises if the session may no longer be used.
    """

    def perform(action: Action) -> object:
        check()
        if isinstance(action, Run):  # first, because nearly every action is one
            operation, seconds, consumes = action
            return session.run(operation, seconds, consumes=consumes)
        match action:
            case Pause(seconds):
                wait_for(threading.Event(), seconds)
            case Listen(bell, heard, looks_at, seconds):
                bell.wait(heard, looks_at, seconds)
            case Apart(flow):
                drive(flow, perform)
        return None

    return perform


def performer_async(
    session: AsyncSession, check: Callable[[], None] = unchecked
) -> Callable[[Action], Awaitable[object]]:
    """Return the function that carries out one action, awaiting; see `performer`."""

    apart: set[asyncio.Task[None]] = set()  # the event loop holds tasks only weakly

    async def perform(action: Action) -> object:
        check()
        if isinstance(action, Run):  # first, because nearly every action is one
            operation, seconds, consumes = action
            return await session.run(operation, seconds, consumes=consumes)
        match action:
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

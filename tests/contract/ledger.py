"""Queues that keep count of what they ask of their store."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Protocol, TypeVar

from duequeue import AsyncQueue, ManualClock, Queue
from duequeue.actions import performer, performer_async
from duequeue.connect import backend_for
from duequeue.flows import opening
from duequeue.steps import drive, drive_async
from duequeue.store import AsyncSession, Operation, Session
from tests.contract.phrases import DEFAULT_LEASE
from tests.fixtures.faces import QueueFace

T = TypeVar("T")

# How often each operation of the store was run, by its name.
Ledger = Mapping[str, int]


class OpenCounted(Protocol):
    """Opens a queue of the store and face under test, and its ledger."""

    def __call__(self, *, poll_interval: timedelta = ...) -> tuple[QueueFace, Ledger]: ...


class CountingSession:
    """A session that counts."""

    def __init__(self, session: Session, counter: Counter[str]) -> None:
        self._session = session
        self._counter = counter
        self.close = session.close

    def run(self, operation: Operation[T]) -> T:
        _count(operation, self._counter)
        return self._session.run(operation)


class CountingAsyncSession:
    """An awaiting session that counts."""

    def __init__(self, session: AsyncSession, counter: Counter[str]) -> None:
        self._session = session
        self._counter = counter
        self.close = session.close

    async def run(self, operation: Operation[T]) -> T:
        _count(operation, self._counter)
        return await self._session.run(operation)


def open_blocking(
    url: str, clock: ManualClock, counter: Counter[str], poll_interval: timedelta
) -> Queue[Any]:
    backend = backend_for(url)
    session = CountingSession(backend.session(), counter)
    context = drive(_checked(url, clock, poll_interval).flow(), performer(session))
    return Queue(backend, context, session)


async def open_awaiting(
    url: str, clock: ManualClock, counter: Counter[str], poll_interval: timedelta
) -> AsyncQueue[Any]:
    backend = backend_for(url)
    session = CountingAsyncSession(backend.async_session(), counter)
    opened = drive_async(_checked(url, clock, poll_interval).flow(), performer_async(session))
    return AsyncQueue(backend, await opened, session)


def _checked(url: str, clock: ManualClock, poll_interval: timedelta) -> opening.Opening[Any]:
    return opening.checked(
        backend_for(url),
        "orders",
        codec=None,
        lease=DEFAULT_LEASE,
        poll_interval=poll_interval,
        clock=clock,
        retry=None,
        max_attempts=None,
        migrate=True,
        history=False,
    )


def _count(operation: Operation[Any], counter: Counter[str]) -> None:
    assert isinstance(operation, partial)
    counter[operation.func.__name__] += 1

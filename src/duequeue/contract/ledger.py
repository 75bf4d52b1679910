"""Queues that keep count of what they ask of their store."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from inspect import isgenerator
from typing import Any, Protocol, cast

from duequeue import AsyncQueue, ManualClock, Queue
from duequeue.backends import backend_for
from duequeue.contract.faces import QueueFace
from duequeue.drive.actions import performer, performer_async
from duequeue.drive.steps import drive, drive_async
from duequeue.flows import opening
from duequeue.flows.context import Context
from duequeue.port.store import Backend, Store

# How often each operation of the store was run, by its name.
Ledger = Mapping[str, int]


class OpenCounted(Protocol):
    """Opens a queue of the store and face under test, and its ledger."""

    def __call__(self, *, poll_interval: timedelta = ...) -> tuple[QueueFace, Ledger]: ...


class CountingStore:
    """A store that counts how often each of its operations was begun."""

    def __init__(self, store: Any, counter: Counter[str]) -> None:
        self._store = store
        self._counter = counter

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._store, name)
        if not callable(value):
            return value

        def call(*arguments: Any, **options: Any) -> Any:
            steps = value(*arguments, **options)
            self._counter[name] += isgenerator(steps)
            return steps

        return call


def open_blocking(
    url: str, clock: ManualClock, counter: Counter[str], poll_interval: timedelta
) -> Queue[Any]:
    backend = backend_for(url)
    session = backend.session()
    context = drive(_checked(backend, clock, poll_interval).flow(), performer(session))
    return Queue(backend, _counting(context, counter), session)


async def open_awaiting(
    url: str, clock: ManualClock, counter: Counter[str], poll_interval: timedelta
) -> AsyncQueue[Any]:
    backend = backend_for(url)
    session = backend.async_session()
    opened = drive_async(_checked(backend, clock, poll_interval).flow(), performer_async(session))
    return AsyncQueue(backend, _counting(await opened, counter), session)


def _counting(context: Context[Any], counter: Counter[str]) -> Context[Any]:
    return replace(context, store=cast("Store", CountingStore(context.store, counter)))


def _checked(
    backend: Backend, clock: ManualClock, poll_interval: timedelta
) -> opening.Opening[Any]:
    return opening.checked(backend, "orders", poll_interval=poll_interval, clock=clock)

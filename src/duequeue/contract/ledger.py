"""Queues that keep count of what they ask of their store."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from inspect import isgenerator
from typing import Any, Protocol, cast

from duequeue import AsyncQueue, ManualClock, Queue
from duequeue.contract.faces import QueueFace
from duequeue.contract.parts import open_async_parts, open_parts
from duequeue.flows.opening import Around
from duequeue.port.store import Store

# The properties of a store that have operations of their own.
PARTS = {"burials", "cron"}

# How often each operation of the store was run, by its name.
Ledger = Mapping[str, int]


class OpenCounted(Protocol):
    """Opens a queue of the store and face under test, and its ledger."""

    def __call__(self, *, poll_interval: timedelta = ...) -> tuple[QueueFace, Ledger]: ...


class CountingStore:
    """A store, or a part of one, that counts how often each of its operations was begun."""

    def __init__(self, store: Any, counter: Counter[str]) -> None:
        self._store = store
        self._counter = counter

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._store, name)
        if name in PARTS:
            return CountingStore(value, self._counter)
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
    around = _counting(counter)
    return open_parts(url, around=around, clock=clock, poll_interval=poll_interval).queue


async def open_awaiting(
    url: str, clock: ManualClock, counter: Counter[str], poll_interval: timedelta
) -> AsyncQueue[Any]:
    around = _counting(counter)
    parts = await open_async_parts(url, around=around, clock=clock, poll_interval=poll_interval)
    return parts.queue


def _counting(counter: Counter[str]) -> Around:
    return lambda store: cast("Store", CountingStore(store, counter))

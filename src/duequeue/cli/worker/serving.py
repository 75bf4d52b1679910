"""The consumers that run in this process, on threads or on an event loop."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from typing import Any, Protocol, Self, TypeVar

from duequeue.cli.handler_path import is_async
from duequeue.cli.worker.django_support import with_fresh_connections
from duequeue.cli.worker.services import ServedHandler
from duequeue.consumer.consumer_async import AsyncConsumer
from duequeue.events.events import Listener
from duequeue.opening import open_queue
from duequeue.opening_async import AwaitableQueue
from duequeue.queue import Queue
from duequeue.queue_async import AsyncQueue

T = TypeVar("T")


class RunningConsumer(Protocol):
    """What a worker needs of its consumer, whether blocking or asynchronous."""

    @property
    def in_hand(self) -> int:
        """How many messages the consumer holds."""

    @property
    def stopped(self) -> bool:
        """Whether it has stopped."""

    def stop(self, grace: timedelta) -> None:
        """Stop the consumer, and return when it has stopped."""


class RunningConsumers:
    """All consumers of a worker, which stop together."""

    def __init__(self, consumers: Sequence[RunningConsumer]) -> None:
        self._consumers = consumers

    @property
    def in_hand(self) -> int:
        """How many messages they hold."""
        return sum(consumer.in_hand for consumer in self._consumers)

    @property
    def stopped(self) -> bool:
        """Whether one of them has stopped."""
        return any(consumer.stopped for consumer in self._consumers)

    def stop(self, grace: timedelta) -> None:
        """Stop all at once, and return when they have stopped."""
        stopping = [
            threading.Thread(target=consumer.stop, args=(grace,), daemon=True)
            for consumer in self._consumers
        ]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()


@contextmanager
def running_consumers(
    services: list[ServedHandler], listener: Listener
) -> Iterator[RunningConsumers]:
    """Open the queues and consume, on one event loop for all asynchronous handlers."""
    with ExitStack() as open_things:
        loop: Loop | None = None
        running: list[RunningConsumer] = []
        for service in services:
            if is_async(service.function):
                loop = loop or open_things.enter_context(Loop())
                running.append(open_things.enter_context(_on_a_loop(loop, service, listener)))
            else:
                running.append(open_things.enter_context(_on_threads(service, listener)))
        yield RunningConsumers(running)


@contextmanager
def _on_threads(service: ServedHandler, listener: Listener) -> Iterator[RunningConsumer]:
    handler = with_fresh_connections(service.function)
    with _queue_of(service) as queue:
        unsubscribe = queue.events.subscribe(listener)
        with queue.consume(handler, **service.options) as consumer:
            yield consumer
        unsubscribe()


def _queue_of(service: ServedHandler) -> AbstractContextManager[Queue[Any]]:
    """Return the queue of the handler's module, or another one; it is closed with the worker."""
    return open_queue(service.opening, Queue) if service.queue is None else service.queue


@contextmanager
def _on_a_loop(
    loop: "Loop", service: ServedHandler, listener: Listener
) -> Iterator[RunningConsumer]:
    """Run on the loop's own thread, so that a handler that blocks it does not block signals."""
    handler = with_fresh_connections(service.function)

    async def start() -> tuple[AsyncQueue[Any], AsyncConsumer[Any]]:
        queue = await AwaitableQueue(service.opening, AsyncQueue[Any])
        queue.events.subscribe(listener)
        return queue, queue.consume(handler, **service.options)

    queue, consumer = loop.run(start())
    yield ConsumerOnLoop(loop, consumer)
    loop.run(consumer.stop())
    loop.run(queue.close())


class Loop:
    """An event loop on its own thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def run(self, awaited: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, and wait for its result."""
        return asyncio.run_coroutine_threadsafe(awaited, self._loop).result()

    def close(self) -> None:
        """End the loop and its thread."""
        self.run(self._loop.shutdown_asyncgens())
        self.run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class ConsumerOnLoop:
    """An asynchronous consumer that is used from another thread."""

    def __init__(self, loop: Loop, consumer: AsyncConsumer[Any]) -> None:
        self._loop = loop
        self._consumer = consumer

    @property
    def in_hand(self) -> int:
        """How many messages the consumer holds."""
        return self._consumer.in_hand

    @property
    def stopped(self) -> bool:
        """Whether it has stopped."""
        return self._consumer.stopped

    def stop(self, grace: timedelta) -> None:
        """Stop the consumer, and return when it has stopped."""
        self._loop.run(self._consumer.stop(grace))

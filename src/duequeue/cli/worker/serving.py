"""A consumer that runs in this process, on threads or on an event loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from duequeue.cli.handler_path import is_async
from duequeue.cli.worker.settings import WorkerSettings
from duequeue.consumer.consumer_async import AsyncConsumer
from duequeue.events.events import Listener
from duequeue.queue import Queue
from duequeue.queue_async import AsyncQueue

T = TypeVar("T")


class RunningConsumer(Protocol):
    """What a worker needs of its consumer, whether blocking or asynchronous."""

    @property
    def in_hand(self) -> int:
        """How many messages the consumer holds."""

    def stop(self, grace: timedelta) -> None:
        """Stop the consumer, and return when it has stopped."""


def running_consumer(
    settings: WorkerSettings, handler: Callable[..., Any], listener: Listener
) -> AbstractContextManager[RunningConsumer]:
    """Open the queue and consume, on an event loop if the handler is asynchronous."""
    consuming = _on_a_loop if is_async(handler) else _on_threads
    return consuming(settings, handler, listener)


@contextmanager
def _on_threads(
    settings: WorkerSettings, handler: Callable[..., Any], listener: Listener
) -> Iterator[RunningConsumer]:
    with Queue.open(settings.url, settings.queue, **settings.opening()) as queue:
        queue.events.subscribe(listener)
        with queue.consume(handler, **settings.consuming()) as consumer:
            yield consumer


@contextmanager
def _on_a_loop(
    settings: WorkerSettings, handler: Callable[..., Any], listener: Listener
) -> Iterator[RunningConsumer]:
    """Run the loop on its own thread, so that a handler that blocks it does not block signals."""
    loop = Loop()

    async def start() -> tuple[AsyncQueue[Any], AsyncConsumer[Any]]:
        queue = await AsyncQueue.open(settings.url, settings.queue, **settings.opening())
        queue.events.subscribe(listener)
        return queue, queue.consume(handler, **settings.consuming())

    try:
        queue, consumer = loop.run(start())
        yield ConsumerOnLoop(loop, consumer)
        loop.run(consumer.stop())
        loop.run(queue.close())
    finally:
        loop.close()


class Loop:
    """An event loop on its own thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

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

    def stop(self, grace: timedelta) -> None:
        """Stop the consumer, and return when it has stopped."""
        self._loop.run(self._consumer.stop(grace))

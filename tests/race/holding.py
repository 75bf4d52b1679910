"""A consumer whose handler runs for as long as a test wants, on a thread or in a task."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

from duequeue.contract.faces import AsyncFace, Blocking, Face, LoopThread
from duequeue.contract.phrases import PATIENCE


class HeldHandler:
    """A handler that begins, waits until it may end, and notes whether it kept its lease."""

    def __init__(self) -> None:
        self.began = Event()
        self.may_end = Event()
        self.kept_leases: list[bool] = []

    def __call__(self, delivery: Any) -> None:
        self.began.set()
        self.may_end.wait(PATIENCE)
        self.kept_leases.append(not delivery.lost)


@contextmanager
def holding(queue: Any, face: Face, loop: LoopThread) -> Iterator[tuple[Any, HeldHandler]]:
    """Consume one message, `held`, with such a handler."""
    handler = HeldHandler()

    async def handle_async(delivery: Any) -> None:
        await asyncio.to_thread(handler, delivery)

    if isinstance(face, AsyncFace):
        consumer: Any = Blocking(queue.consume(handle_async), loop)
    else:
        consumer = queue.consume(handler)
    queue.offer("held", 1)
    assert handler.began.wait(PATIENCE)
    try:
        yield consumer, handler
    finally:
        handler.may_end.set()

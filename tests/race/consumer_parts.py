"""Consumers in other processes."""

import asyncio
import os
import signal
import sqlite3
import threading
from contextlib import closing
from datetime import timedelta
from typing import Any

import psycopg

from duequeue import AsyncQueue, OfferOutcome, Queue
from tests.race.parts import open_queue
from tests.race.worker import tell

PERMITS = "permits"
SOON = timedelta(milliseconds=100)

_telling = threading.Lock()


def tell_from_any_thread(value: object) -> None:
    """Let the test know, one thread at a time."""
    with _telling:
        tell(value)


def consume_until_killed(url: str) -> None:
    """Handle as fast as it goes, and tell of each message."""
    queue: Any = open_queue(url)
    queue.consume(lambda delivery: tell_from_any_thread(delivery.key), concurrency=4).run()


def run_until_signalled(url: str) -> str:
    """Consume on threads; each handler tells of its message and ends once it is permitted."""
    with Queue.open(url, "orders") as queue, Queue.open(url, PERMITS) as permits:

        def handle(delivery: Any) -> None:
            while signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                pass  # `run` has not come that far
            tell_from_any_thread(delivery.key)
            while not permits.contains(delivery.key):
                pass

        tell(os.getpid())
        queue.consume(handle, concurrency=1).run()
    return "stopped"


def run_until_signalled_async(url: str) -> str:
    """Do the same on tasks."""

    async def consume() -> str:
        async with (
            AsyncQueue.open(url, "orders") as queue,
            AsyncQueue.open(url, PERMITS) as permits,
        ):

            async def handle(delivery: Any) -> None:
                tell(delivery.key)
                while not await permits.contains(delivery.key):
                    pass

            tell(os.getpid())
            await queue.consume(handle, concurrency=1).run()
        return "stopped"

    return asyncio.run(consume())


def offer(url: str, key: str, *, soon: bool = False) -> OfferOutcome:
    """Offer by the machine's own clock, for now or a moment later."""
    with Queue.open(url, "orders") as queue:
        return queue.offer(key, 1, SOON if soon else None)


def offer_within(url: str, key: str) -> None:
    """Offer in a transaction of the application's own."""
    with Queue.open(url, "orders") as queue:
        if url.startswith("sqlite"):
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file, file:
                queue.within(file).offer(key, 1)
        else:
            with psycopg.connect(url) as connection:
                queue.within(connection).offer(key, 1)

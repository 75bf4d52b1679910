"""A thousand queues in one process: they share connections and threads."""

import asyncio
import threading
from collections import Counter
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import psycopg

from duequeue import AsyncQueue, Queue
from duequeue.contract.phrases import DAY, PATIENCE

QUEUES = 1000
CONSUMED = 100
MOST_CONNECTIONS = 20
MOST_THREADS = 50

CONNECTIONS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'duequeue'
"""


def count_connections(watch: psycopg.Connection) -> int:
    ((count,),) = watch.execute(CONNECTIONS).fetchall()
    return int(count)


def assert_frugal(watch: psycopg.Connection, threads_before: int) -> None:
    assert count_connections(watch) < MOST_CONNECTIONS
    assert threading.active_count() - threads_before < MOST_THREADS


def test_blocking(ready_database: str) -> None:
    threads_before = threading.active_count()
    with (
        psycopg.connect(ready_database, autocommit=True) as watch,
        ExitStack() as opened,
    ):
        queues = [
            opened.enter_context(Queue.open(ready_database, f"queue-{number}"))
            for number in range(QUEUES)
        ]
        for queue in queues:
            queue.offer("a", queue.name)
        for queue in queues:
            delivery = queue.poll(PATIENCE)
            assert delivery is not None
            assert delivery.payload == queue.name
            assert delivery.ack()
        assert_frugal(watch, threads_before)


def test_awaiting_with_consumers(ready_database: str) -> None:
    threads_before = threading.active_count()
    handled: Counter[str] = Counter()
    all_handled = asyncio.Event()

    async def handle(delivery: Any) -> None:
        handled[delivery.queue_name] += 1
        if handled.total() == 2 * CONSUMED:
            all_handled.set()

    async def scenario(watch: psycopg.Connection) -> None:
        async with AsyncExitStack() as opened:
            queues = [
                await opened.enter_async_context(AsyncQueue.open(ready_database, f"queue-{number}"))
                for number in range(QUEUES)
            ]
            for queue in queues[:CONSUMED]:
                await opened.enter_async_context(queue.consume(handle))
            offers = [queue.offer(f"a-{n}", n) for queue in queues[:CONSUMED] for n in range(2)]
            await asyncio.gather(*offers)
            await asyncio.gather(*(queue.offer("later", 1, DAY) for queue in queues))
            await asyncio.wait_for(all_handled.wait(), PATIENCE)
            assert_frugal(watch, threads_before)
        assert set(handled.values()) == {2}

    with psycopg.connect(ready_database, autocommit=True) as watch:
        asyncio.run(scenario(watch))

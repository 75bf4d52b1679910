"""The peer pgqueuer, on its recommended driver (asyncpg) and with its default durability."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from time import perf_counter, time_ns
from typing import Any

import asyncpg
from pgqueuer import AsyncpgDriver, AsyncpgPoolDriver, Job, PgQueuer, Queries

from bench.contender import PAYLOAD

ENTRYPOINT = "bench"
CHUNK = 1000


class Contestant:
    """A worker with a given batch size."""

    def __init__(self, batch: int) -> None:
        self.name = f"pgqueuer, batch {batch}"
        self._batch = batch

    def prepare(self, url: str) -> None:
        """Install its tables."""
        asyncio.run(_with_queries(url, lambda queries: queries.install()))

    def load(self, url: str, messages: int) -> None:
        """Enqueue in chunks, its bulk interface."""
        asyncio.run(_with_queries(url, lambda queries: _enqueue(queries, messages)))

    def drain(self, url: str, messages: int) -> float:
        """Count calls of an entrypoint that does nothing else."""
        began = perf_counter()
        asyncio.run(self._work(url, messages, lambda _: 0, lambda: None))
        return perf_counter() - began

    @contextmanager
    def producer(self, url: str) -> Iterator[Callable[[str, int], object]]:
        """Enqueue one by one on one connection."""
        with asyncio.Runner() as runner:
            connection = runner.run(asyncpg.connect(url))
            queries = Queries(AsyncpgDriver(connection))
            yield lambda _, stamp: runner.run(queries.enqueue(ENTRYPOINT, str(stamp).encode()))
            runner.run(connection.close())

    def receive(self, url: str, messages: int, ready: Callable[[], None]) -> list[int]:
        """Note the age of each job."""
        return asyncio.run(self._work(url, messages, _age, ready))

    async def _work(
        self, url: str, messages: int, look: Callable[[Job], int], ready: Callable[[], None]
    ) -> list[int]:
        seen: list[int] = []
        async with asyncpg.create_pool(url, min_size=2, max_size=10) as pool:
            worker = PgQueuer(AsyncpgPoolDriver(pool))

            @worker.entrypoint(ENTRYPOINT)
            async def handle(job: Job) -> None:
                seen.append(look(job))
                if len(seen) == messages:
                    worker.shutdown.set()

            asyncio.get_running_loop().call_later(0.5, ready)
            await worker.qm.run(batch_size=self._batch)
        return seen


def _age(job: Job) -> int:
    return time_ns() - int(job.payload or b"0")


async def _with_queries(url: str, work: Callable[[Queries], Coroutine[Any, Any, object]]) -> None:
    connection = await asyncpg.connect(url)
    try:
        await work(Queries(AsyncpgDriver(connection)))
    finally:
        await connection.close()


async def _enqueue(queries: Queries, messages: int) -> None:
    for start in range(0, messages, CHUNK):
        count = min(CHUNK, messages - start)
        await queries.enqueue([ENTRYPOINT] * count, [PAYLOAD.encode()] * count, [0] * count)

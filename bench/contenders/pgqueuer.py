"""The peer pgqueuer, on its recommended driver, asyncpg."""

import asyncio
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import random
from time import perf_counter
from typing import Any

import asyncpg
from pgqueuer import AsyncpgPoolDriver, Job, PgQueuer, Queries
from pgqueuer.queries import EntrypointExecutionParameter

from bench.contender import BATCH, Tally, lead_time, stamp
from bench.contender_async import AsyncContender, pinged, timed_async, timed_together
from bench.filling import fill_table

ENTRYPOINT = "bench"
ENTRYPOINTS: Any = {ENTRYPOINT: EntrypointExecutionParameter(0)}
CHUNK = 1000
READY_AFTER = 1.0  # seconds, because it does not report when it listens

FUTURE = """
    INSERT INTO pgqueuer (priority, status, entrypoint, payload, execute_after)
    SELECT 0, 'queued', 'bench', '\\x31', now() + interval '1 year'
    FROM generate_series(1, %(messages)s)
"""


class Pgqueuer(AsyncContender):
    """Uses its defaults with batches of 100, and keeps finished messages in its log table."""

    notes = "copies finished messages to a log; no unique keys"

    async def open(self) -> None:
        """Install its tables unless another process has done so."""
        self._pool = await asyncpg.create_pool(self.url, min_size=2, max_size=16)
        self._worker: Any = uuid.uuid4()
        self._queries = Queries(AsyncpgPoolDriver(self._pool))
        if not await self._queries.has_table("pgqueuer"):
            await self._queries.install()

    async def shut(self) -> None:
        """Close the pool."""
        await self._pool.close()

    def load(self, messages: int) -> None:
        """Enqueue lists."""
        self.run(self._enqueue_lists(messages))

    def offer_one(self, messages: int) -> float:
        """Enqueue."""
        return self.run(timed_async(messages, self._enqueue))

    def offer_together(self, messages: int, callers: int) -> float:
        """Enqueue in several tasks."""
        return self.run(timed_together(messages, callers, self._enqueue))

    def offer_batch(self, messages: int) -> float:
        """Enqueue lists of a thousand."""
        return self.run(timed_async(1, lambda _: self._enqueue_lists(messages)))

    def poll_ack_one(self, messages: int) -> float:
        """Dequeue one and log it."""
        return self.run(self._dequeue(messages, 1))

    def poll_ack_many(self, messages: int) -> float:
        """Dequeue a hundred and log them."""
        return self.run(self._dequeue(messages, BATCH))

    def consume(self, messages: int) -> float:
        """Run a worker."""
        tally = Tally(messages)
        self.run(self._work(messages, lambda _: tally.count(), lambda: None))
        return tally.seconds

    def receive(self, messages: int, ready: Callable[[], None]) -> list[float]:
        """Run a worker."""
        ages: list[float] = []
        self.run(
            self._work(messages, lambda job: ages.append(stamp() - float(job.payload or 0)), ready)
        )
        return ages

    def ping(self, messages: int) -> None:
        """Enqueue."""
        self.run(
            pinged(messages, lambda _, sent: self._queries.enqueue(ENTRYPOINT, str(sent).encode()))
        )

    def keep_time(self, messages: int, seconds: float) -> list[float]:
        """Enqueue for later, and run a worker."""
        late, lead = list[float](), lead_time(messages)
        delays: list[timedelta | None] = [
            timedelta(seconds=lead + random() * seconds) for _ in range(messages)
        ]
        self.run(
            self._queries.enqueue([ENTRYPOINT] * messages, [b""] * messages, [0] * messages, delays)
        )
        self.run(self._work(messages, lambda job: late.append(_lateness(job)), lambda: None))
        return late

    def fill_future(self, messages: int) -> None:
        """Insert into its table."""
        fill_table(self.url, "pgqueuer", FUTURE, messages)

    def take_turns(self, turns: int) -> list[float]:
        """Enqueue, dequeue and log."""

        async def run() -> list[float]:
            taken: list[float] = []
            for number in range(turns):
                await self._enqueue(number)
                began = perf_counter()
                jobs = await self._fetch(1)
                taken.append((perf_counter() - began) * 1000)
                await self._log(jobs)
            return taken

        return self.run(run())

    def stay_idle(self, seconds: float) -> None:
        """Run a worker."""
        self.run(self._work(0, lambda _: None, lambda: None, seconds))

    async def _enqueue(self, _: int) -> None:
        await self._queries.enqueue(ENTRYPOINT, self.payload.encode())

    async def _enqueue_lists(self, messages: int) -> None:
        payload = self.payload.encode()
        for start in range(0, messages, CHUNK):
            count = min(CHUNK, messages - start)
            await self._queries.enqueue([ENTRYPOINT] * count, [payload] * count, [0] * count)

    async def _dequeue(self, messages: int, batch: int) -> float:
        began = perf_counter()
        while messages > 0:
            jobs = await self._fetch(batch)
            await self._log(jobs)
            messages -= len(jobs)
        return perf_counter() - began

    async def _fetch(self, batch: int) -> list[Job]:
        return await self._queries.dequeue(
            batch, ENTRYPOINTS, self._worker, None, timedelta(seconds=30)
        )

    async def _log(self, jobs: list[Job]) -> None:
        await self._queries.log_jobs([(job, "successful", None) for job in jobs])

    async def _work(
        self,
        messages: int,
        look: Callable[[Job], object],
        ready: Callable[[], None],
        seconds: float | None = None,
    ) -> None:
        worker = PgQueuer(AsyncpgPoolDriver(self._pool))
        left = messages

        @worker.entrypoint(ENTRYPOINT)
        async def handle(job: Job) -> None:
            nonlocal left
            look(job)
            left -= 1
            if left == 0:
                worker.shutdown.set()

        loop = asyncio.get_running_loop()
        loop.call_later(READY_AFTER, ready)
        if seconds is not None:
            loop.call_later(seconds, worker.shutdown.set)
        await worker.qm.run(batch_size=BATCH)


def _lateness(job: Job) -> float:
    return (datetime.now(UTC) - job.execute_after) / timedelta(milliseconds=1)

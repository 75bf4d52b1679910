"""The peer procrastinate, on psycopg."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from random import random
from time import perf_counter

import procrastinate
from procrastinate.jobs import Job, Status

from bench.contender import Tally, lead_time, stamp
from bench.contender_async import AsyncContender, pinged, timed_async, timed_together
from bench.filling import fill_table

CHUNK = 1000
CONCURRENCY = 20
READY_AFTER = 1.0  # seconds, because it does not report when it listens

FUTURE = """
    INSERT INTO procrastinate_jobs (queue_name, task_name, args, scheduled_at)
    SELECT 'default', 'bench', '{}', now() + interval '1 year'
    FROM generate_series(1, %(messages)s)
"""


class Procrastinate(AsyncContender):
    """Runs 20 at once and deletes finished messages; looks for scheduled messages every 5 s."""

    notes = "fetches one at a time; every change also writes an event row"

    async def open(self) -> None:
        """Install its tables unless another process has done so."""
        connector = procrastinate.PsycopgConnector(conninfo=self.url, max_size=CONCURRENCY)
        self._app = procrastinate.App(connector=connector)
        self._look: Callable[[float], object] = lambda _: None

        @self._app.task(name="bench")
        async def handle(payload: str = "", stamped: float = 0) -> None:  # noqa: ARG001 - it is only transported
            self._look(stamped)

        self._handle = handle
        await self._app.open_async()
        if not await self._app.check_connection_async():
            await self._app.schema_manager.apply_schema_async()

    async def shut(self) -> None:
        """Close its pool."""
        await self._app.close_async()

    def load(self, messages: int) -> None:
        """Defer batches."""
        self.run(self._defer_batches(messages))

    def offer_one(self, messages: int) -> float:
        """Defer."""
        return self.run(timed_async(messages, self._defer))

    def offer_together(self, messages: int, callers: int) -> float:
        """Defer in several tasks."""
        return self.run(timed_together(messages, callers, self._defer))

    def offer_batch(self, messages: int) -> float:
        """Defer batches of a thousand."""
        return self.run(timed_async(1, lambda _: self._defer_batches(messages)))

    def poll_ack_one(self, messages: int) -> float:
        """Fetch one and finish it."""

        async def run() -> float:
            worker = await self._app.job_manager.register_worker()
            began = perf_counter()
            for _ in range(messages):
                await self._finish(await self._fetch(worker))
            return perf_counter() - began

        return self.run(run())

    def consume(self, messages: int) -> float:
        """Run a worker."""
        tally = Tally(messages)
        self.run(self._work(messages, lambda _: tally.count(), lambda: None))
        return tally.seconds

    def receive(self, messages: int, ready: Callable[[], None]) -> list[float]:
        """Run a worker."""
        ages: list[float] = []
        self.run(self._work(messages, lambda sent: ages.append(stamp() - sent), ready))
        return ages

    def ping(self, messages: int) -> None:
        """Defer."""
        self.run(pinged(messages, lambda _, sent: self._handle.defer_async(stamped=sent)))

    def keep_time(self, messages: int, seconds: float) -> list[float]:
        """Defer for later, and run a worker."""

        start = datetime.now(UTC) + timedelta(seconds=10 * lead_time(messages))

        async def schedule(_: int) -> None:
            due = start + timedelta(seconds=random() * seconds)
            deferrer = self._handle.configure(schedule_at=due)
            await deferrer.defer_async(stamped=due.timestamp() * 1000)

        self.run(timed_together(messages, CONCURRENCY, schedule))
        return self.receive(messages, lambda: None)

    def fill_future(self, messages: int) -> None:
        """Insert into its table."""
        fill_table(self.url, "procrastinate_jobs", FUTURE, messages)

    def take_turns(self, turns: int) -> list[float]:
        """Defer, fetch and finish."""

        async def run() -> list[float]:
            worker, taken = await self._app.job_manager.register_worker(), list[float]()
            for number in range(turns):
                await self._defer(number)
                began = perf_counter()
                job = await self._fetch(worker)
                taken.append((perf_counter() - began) * 1000)
                await self._finish(job)
            return taken

        return self.run(run())

    def stay_idle(self, seconds: float) -> None:
        """Run a worker."""
        self.run(self._work(1, lambda _: None, lambda: None, seconds))

    async def _defer(self, _: int) -> None:
        await self._handle.defer_async(payload=self.payload)

    async def _defer_batches(self, messages: int) -> None:
        for start in range(0, messages, CHUNK):
            count = min(CHUNK, messages - start)
            await self._handle.batch_defer_async(*[{"payload": self.payload}] * count)

    async def _fetch(self, worker: int) -> Job:
        job = await self._app.job_manager.fetch_job(None, worker)
        assert job is not None
        return job

    async def _finish(self, job: Job) -> None:
        await self._app.job_manager.finish_job(job, Status.SUCCEEDED, delete_job=True)

    async def _work(
        self,
        messages: int,
        look: Callable[[float], object],
        ready: Callable[[], None],
        seconds: float | None = None,
    ) -> None:
        done = asyncio.Event()
        left = messages

        def count(stamped: float) -> None:
            nonlocal left
            look(stamped)
            left -= 1
            if left == 0:
                done.set()

        self._look = count
        worker = asyncio.create_task(
            self._app.run_worker_async(
                concurrency=CONCURRENCY, delete_jobs="successful", install_signal_handlers=False
            )
        )
        asyncio.get_running_loop().call_later(READY_AFTER, ready)
        with suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), seconds)
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)

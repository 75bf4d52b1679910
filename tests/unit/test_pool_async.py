"""Places in the pool of an event loop, without any connection."""

import asyncio
from math import inf
from typing import Any

from duequeue.stores.sql.connections.pool_async import AsyncPool


class NoServer:
    """A server that nobody connects to."""

    pool_size = 2

    def __init__(self) -> None:
        self.finished: list[Any] = []

    def __str__(self) -> str:
        return "no server"

    def socket_of(self, connection: Any) -> int:
        raise OSError(connection)

    def is_lost(self, connection: Any) -> bool:  # noqa: ARG002
        return False

    def finish(self, connection: Any) -> None:
        self.finished.append(connection)

    def answers(self, seconds: int) -> bool:
        raise NotImplementedError(seconds)


def used(pool: AsyncPool) -> int:
    assert pool.use is not None
    return pool.use.used


def test_a_place_that_comes_together_with_a_cancellation_is_free_again() -> None:
    async def scenario() -> None:
        pool = AsyncPool(NoServer())
        pool.join()
        place = await pool.take(60, consumes=False)
        waiting = asyncio.create_task(pool.take(60, consumes=False))
        await asyncio.sleep(0)
        pool.give(place, reusable=True)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        assert used(pool) == 0
        assert await pool.take(60, consumes=False) is place

    asyncio.run(scenario())


class Connection:
    """A connection that was used just now."""

    idle_since = inf


def test_a_place_whose_call_was_cut_off_keeps_the_next_connection() -> None:
    async def scenario() -> None:
        server = NoServer()
        pool = AsyncPool(server)
        pool.join()
        first, second = Connection(), Connection()
        for connection in (first, second):
            place = await pool.take(60, consumes=False)
            assert place.connection is None
            place.connection = connection
            if connection is first:
                place.is_cut = True  # as the watchdog says
            pool.give(place, reusable=True)
        assert server.finished == [first]
        assert (await pool.take(60, consumes=False)).connection is second

    asyncio.run(scenario())


def test_a_place_is_kept_for_consumers() -> None:
    async def scenario() -> None:
        pool = AsyncPool(NoServer())
        pool.join()
        await pool.take(60, consumes=False)
        waiting = asyncio.create_task(pool.take(60, consumes=False))
        await asyncio.sleep(0)
        await pool.take(60, consumes=True)
        assert used(pool) == 2
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait([waiting])

    asyncio.run(scenario())

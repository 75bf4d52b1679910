"""The outbox of an asynchronous application, with the connections that it may use."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import aiosqlite
import asyncmy
import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from duequeue import (
    AsyncQueue,
    ConfigHash,
    CronMessage,
    Message,
    OfferOutcome,
    SchemaError,
    WrongDatabase,
)
from tests.fixtures.connections import mariadb_arguments

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE = 30.0

# Runs a statement of the application.
Execute: TypeAlias = Callable[[str], Awaitable[Any]]
Transaction: TypeAlias = Callable[[str], AbstractAsyncContextManager[tuple[Execute, Any]]]


class ChangedMyMind(Exception):
    """Rolls an order back."""


@asynccontextmanager
async def with_psycopg(url: str) -> AsyncIterator[tuple[Execute, Any]]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield connection.execute, connection


@asynccontextmanager
async def with_asyncpg(url: str) -> AsyncIterator[tuple[Execute, Any]]:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            yield connection.execute, connection
    finally:
        await connection.close()


@asynccontextmanager
async def with_pool_of_asyncpg(url: str) -> AsyncIterator[tuple[Execute, Any]]:
    async with (
        asyncpg.create_pool(url, min_size=1) as pool,
        pool.acquire() as connection,
        connection.transaction(),
    ):
        yield connection.execute, connection


@asynccontextmanager
async def with_asyncmy(url: str) -> AsyncIterator[tuple[Execute, Any]]:
    async with asyncmy.connect(**mariadb_arguments(url)) as connection:
        cursor = connection.cursor()
        try:
            yield cursor.execute, connection
        except BaseException:
            await connection.rollback()
            raise
        await connection.commit()


@asynccontextmanager
async def with_pool_of_asyncmy(url: str) -> AsyncIterator[tuple[Execute, Any]]:
    async with (
        asyncmy.create_pool(**mariadb_arguments(url), minsize=1) as pool,
        pool.acquire() as connection,
        connection.cursor() as cursor,
    ):
        await connection.begin()
        try:
            yield cursor.execute, connection
        except BaseException:
            await connection.rollback()
            raise
        await connection.commit()


@asynccontextmanager
async def with_aiosqlite(url: str) -> AsyncIterator[tuple[Execute, Any]]:
    async with aiosqlite.connect(url.removeprefix("sqlite:///")) as connection:
        try:
            yield connection.execute, connection
        except BaseException:
            await connection.rollback()
            raise
        await connection.commit()


@asynccontextmanager
async def with_aiosqlite_by_hand(url: str) -> AsyncIterator[tuple[Execute, Any]]:
    path = url.removeprefix("sqlite:///")
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        connection.row_factory = sqlite3.Row
        connection.text_factory = bytes
        await connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection.execute, connection
        except BaseException:
            await connection.execute("ROLLBACK")
            raise
        await connection.execute("COMMIT")


@asynccontextmanager
async def engine_of(url: str, driver: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(url.replace("://", f"+{driver}://", 1))
    try:
        yield engine
    finally:
        await engine.dispose()


def with_sqlalchemy_connection(driver: str) -> Transaction:
    @asynccontextmanager
    async def transaction(url: str) -> AsyncIterator[tuple[Execute, Any]]:
        async with engine_of(url, driver) as engine, engine.begin() as connection:
            yield lambda statement: connection.execute(sqlalchemy.text(statement)), connection

    return transaction


def with_sqlalchemy_session(driver: str) -> Transaction:
    @asynccontextmanager
    async def transaction(url: str) -> AsyncIterator[tuple[Execute, Any]]:
        async with (
            engine_of(url, driver) as engine,
            AsyncSession(engine) as session,
            session.begin(),
        ):
            yield lambda statement: session.execute(sqlalchemy.text(statement)), session

    return transaction


WAYS = [
    pytest.param("postgres", with_psycopg, id="psycopg"),
    pytest.param("postgres", with_asyncpg, id="asyncpg"),
    pytest.param("postgres", with_pool_of_asyncpg, id="asyncpg pool"),
    pytest.param("mariadb", with_asyncmy, id="asyncmy"),
    pytest.param("mariadb", with_pool_of_asyncmy, id="asyncmy pool"),
    pytest.param("sqlite", with_aiosqlite, id="aiosqlite"),
    pytest.param("sqlite", with_aiosqlite_by_hand, id="aiosqlite with BEGIN IMMEDIATE"),
]
for store_name, driver_name in [
    ("postgres", "psycopg"),
    ("postgres", "asyncpg"),
    ("mariadb", "asyncmy"),
    ("sqlite", "aiosqlite"),
]:
    for way in (with_sqlalchemy_connection, with_sqlalchemy_session):
        name = f"{way.__name__} {driver_name}"
        WAYS.append(pytest.param(store_name, way(driver_name), id=name))

pytestmark = pytest.mark.parametrize(("store", "transaction"), WAYS, indirect=["store"])


@pytest.fixture
def store(request: pytest.FixtureRequest) -> str:
    """The store whose transactions are used."""
    return str(request.param)


def test_order_and_message_are_committed_as_one(store_url: str, transaction: Transaction) -> None:
    async def main() -> None:
        async with AsyncQueue.open(store_url, "orders") as queue:
            async with transaction(store_url) as (execute, connection):
                await execute("CREATE TABLE purchase (number INTEGER PRIMARY KEY)")
                await queue.within(connection).offer("order-7", {"number": 7})
                assert not await queue.contains("order-7")
            delivery = await queue.try_poll()
            assert delivery is not None
            assert delivery.payload == {"number": 7}
            async with transaction(store_url) as (execute, connection):
                await execute("DROP TABLE purchase")

    asyncio.run(main())


def test_neither_is_left_of_what_was_rolled_back(store_url: str, transaction: Transaction) -> None:
    async def main() -> None:
        async with AsyncQueue.open(store_url, "orders") as queue:
            with suppress(ChangedMyMind):
                async with transaction(store_url) as (_, connection):
                    inside = queue.within(connection)
                    await inside.offer("order-7", {"number": 7})
                    await inside.offer_batch([Message(f"order-{n}", n) for n in range(8, 1500)])
                    raise ChangedMyMind
            assert (await queue.stats()).total == 0

    asyncio.run(main())


def test_the_commit_wakes_a_waiting_poll(store_url: str, transaction: Transaction) -> None:
    if store_url.startswith("mariadb"):
        pytest.skip("a commit by the caller wakes nobody on MariaDB, where polling finds it")

    async def main() -> None:
        day = timedelta(days=1)
        async with AsyncQueue.open(store_url, "orders", poll_interval=day) as queue:
            waiting = asyncio.create_task(queue.poll())
            await queue.stats()
            async with transaction(store_url) as (_, connection):
                await queue.within(connection).offer("order-7", 7)
                await queue.stats()
                assert not waiting.done()
            delivery = await asyncio.wait_for(waiting, PATIENCE)
            assert await delivery.ack()

    asyncio.run(main())


def test_every_call_works_within(store_url: str, transaction: Transaction) -> None:
    async def main() -> None:
        async with AsyncQueue.open(store_url, "orders", history=True) as queue:
            async with transaction(store_url) as (_, connection):
                await use(queue.within(connection))
            assert (await queue.stats()).total == 3
            assert {row.key for row in await queue.history()} == {"a", "b"}

    asyncio.run(main())


async def use(queue: AsyncQueue[Any]) -> None:
    """Offer, claim, settle and look, and install a tick."""
    outcomes = [await queue.offer("a", payload, LONG_AGO) for payload in (1, 2, 2)]
    assert outcomes == [OfferOutcome.CREATED, OfferOutcome.UPDATED, OfferOutcome.IGNORED]
    assert await queue.offer_batch([Message("b", 1, LONG_AGO), Message("b", 2, LONG_AGO)]) == [
        OfferOutcome.CREATED,
        OfferOutcome.UPDATED,
    ]
    a, b = await queue.try_poll_many(5)
    assert (a.payload, b.payload) == (2, 2)
    assert await a.extend()
    assert await a.bury("no")
    assert [burial.key for burial in await queue.buried(5)] == ["a"]
    assert await queue.revive("a")
    assert await queue.ack_many([b]) == 1
    await queue.offer("c", b"\0".hex(), headers={"trace": "1"})
    snapshot = await queue.read("c")
    assert snapshot is not None
    assert snapshot.headers == {"trace": "1"}
    page = await queue.list(prefix="c", due_from=LONG_AGO)
    assert [found.key for found in page.messages] == ["c"]
    assert await queue.run_now("c")
    ticks = [CronMessage("tick", datetime(2100, 1, 1, tzinfo=UTC))]
    assert await queue.cron.install_tick(ConfigHash("one"), "daily", ticks) == 1
    assert (await queue.stats()).total == 3


def test_a_handler_acks_in_its_own_transaction(store_url: str, transaction: Transaction) -> None:
    async def main() -> None:
        async with AsyncQueue.open(store_url, "orders") as queue:
            await queue.offer("order-7", 7)
            delivery = await queue.poll()
            async with transaction(store_url) as (_, connection):
                assert await queue.within(connection).ack_many([delivery]) == 1
            assert not await queue.contains("order-7")

    asyncio.run(main())


def test_bad_input_leaves_the_transaction_usable(store_url: str, transaction: Transaction) -> None:
    async def main() -> None:
        async with AsyncQueue.open(store_url, "orders") as queue:
            async with transaction(store_url) as (_, connection):
                inside = queue.within(connection)
                await inside.offer("a", 1)
                with pytest.raises(ValueError, match="key"):
                    await inside.offer("", 1)
                await inside.offer("b", 1)
            assert (await queue.stats()).total == 2

    asyncio.run(main())


def test_another_database_is_refused(
    store_url: str, other_url: str, transaction: Transaction
) -> None:
    async def main() -> None:
        async with (
            AsyncQueue.open(store_url, "orders") as queue,
            AsyncQueue.open(other_url, "orders") as other,
        ):
            async with transaction(other_url) as (_, connection):
                await other.within(connection).offer("a", 1)
                with pytest.raises(WrongDatabase, match="another database"):
                    await queue.within(connection).offer("b", 1)
                await other.within(connection).offer("c", 1)
            assert ((await queue.stats()).total, (await other.stats()).total) == (0, 2)

    asyncio.run(main())


def test_a_database_without_our_tables_is_refused(
    store_url: str, other_url: str, transaction: Transaction
) -> None:
    async def main() -> None:
        async with AsyncQueue.open(store_url, "orders") as queue:
            async with transaction(other_url) as (execute, connection):
                with pytest.raises(SchemaError, match="duequeue migrate"):
                    await queue.within(connection).offer("a", 1)
                await execute("CREATE TABLE purchase (number INTEGER)")
            assert (await queue.stats()).total == 0

    asyncio.run(main())

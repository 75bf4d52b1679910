"""What `within` refuses, and how the objects of frameworks behave after a commit."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import aiosqlite
import asyncmy
import asyncpg
import psycopg
import pymysql
import pytest
import sqlalchemy
from django.db import connections, transaction
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from duequeue import AsyncQueue, OfferOutcome, Queue, SchemaError, StoreError, WrongDatabase
from duequeue.contract.faces import Face, SyncFace
from tests.fixtures.connections import connect_mariadb, mariadb_arguments
from tests.fixtures.mysqlclient import mysqlclient
from tests.within.django_database import django_database


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def store(request: pytest.FixtureRequest) -> str:
    """Each store that has transactions."""
    return str(request.param)


class ChangedMyMind(Exception):
    """Rolls an order back."""


@contextmanager
def engine_of(url: str, **options: Any) -> Iterator[sqlalchemy.Engine]:
    drivers = {"postgresql://": "postgresql+psycopg://", "mariadb://": "mariadb+pymysql://"}
    for bare, named in drivers.items():
        url = url.replace(bare, named)
    engine = sqlalchemy.create_engine(url, **options)
    yield engine
    engine.dispose()


@asynccontextmanager
async def async_engine_of(url: str, driver: str, **options: Any) -> AsyncIterator[Any]:
    engine = create_async_engine(url.replace("://", f"+{driver}://", 1), **options)
    yield engine
    await engine.dispose()


def drivers_of(store: str) -> list[str]:
    drivers = {"sqlite": ["aiosqlite"], "postgres": ["psycopg", "asyncpg"], "mariadb": ["asyncmy"]}
    return drivers[store]


def test_a_connection_of_sqlalchemy_begins_by_itself(store_url: str) -> None:
    with Queue.open(store_url, "orders") as queue, engine_of(store_url) as engine:
        with engine.connect() as connection:
            queue.within(connection).offer("a", 1)
            connection.commit()
            queue.within(connection).offer("b", 1)
            connection.rollback()
            queue.within(connection).offer("c", 1)
        assert (queue.contains("a"), queue.stats().total) == (True, 1)


def test_an_awaiting_connection_of_sqlalchemy_begins_by_itself(store: str, store_url: str) -> None:
    async def main(driver: str) -> None:
        async with (
            AsyncQueue.open(store_url, f"orders-{driver}") as queue,
            async_engine_of(store_url, driver) as engine,
        ):
            async with engine.connect() as connection:
                await queue.within(connection).offer("a", 1)
                await connection.commit()
                await queue.within(connection).offer("b", 1)
                await connection.rollback()
                await queue.within(connection).offer("c", 1)
            assert (await queue.contains("a"), (await queue.stats()).total) == (True, 1)

    for driver in drivers_of(store):
        asyncio.run(main(driver))


def test_a_face_follows_its_session_into_the_next_transaction(store_url: str) -> None:
    with (
        Queue.open(store_url, "orders") as queue,
        engine_of(store_url) as engine,
        Session(engine) as session,
    ):
        inside = queue.within(session)
        inside.offer("a", 1)
        session.commit()
        with engine.connect():  # takes the connection that the session has given back
            inside.offer("b", 1)
            session.rollback()
        inside.offer("c", 1)
        session.commit()
        assert [queue.contains(key) for key in "abc"] == [True, False, True]


def test_a_face_follows_its_awaiting_session(store: str, store_url: str) -> None:
    async def main(driver: str) -> None:
        async with (
            AsyncQueue.open(store_url, f"orders-{driver}") as queue,
            async_engine_of(store_url, driver) as engine,
            AsyncSession(engine) as session,
        ):
            inside = queue.within(session)
            await inside.offer("a", 1)
            await session.commit()
            await inside.offer("b", 1)
            await session.rollback()
            await inside.offer("c", 1)
            await session.commit()
            assert [await queue.contains(key) for key in "abc"] == [True, False, True]

    for driver in drivers_of(store):
        asyncio.run(main(driver))


def test_sqlalchemy_may_not_commit_by_itself(store_url: str) -> None:
    with (
        Queue.open(store_url, "orders") as queue,
        engine_of(store_url, isolation_level="AUTOCOMMIT") as engine,
        engine.connect() as connection,
    ):
        with pytest.raises(ValueError, match="no open transaction"):
            queue.within(connection)
        assert not connection.in_transaction()


def test_awaiting_sqlalchemy_may_not_commit_by_itself(store: str, store_url: str) -> None:
    async def main(driver: str) -> None:
        async with (
            AsyncQueue.open(store_url, "orders") as queue,
            async_engine_of(store_url, driver, isolation_level="AUTOCOMMIT") as engine,
            engine.connect() as connection,
        ):
            with pytest.raises(ValueError, match="no open transaction"):
                await queue.within(connection).offer("a", 1)
            assert not connection.in_transaction()
            assert not await queue.contains("a")

    for driver in drivers_of(store):
        asyncio.run(main(driver))


def test_django_must_be_inside_atomic(store_url: str) -> None:
    with Queue.open(store_url, "orders") as queue, django_database(store_url) as alias:
        for given in (alias, connections[alias]):
            with pytest.raises(ValueError, match=r"transaction\.atomic"):
                queue.within(given)
        with transaction.atomic(using=alias):
            inside = queue.within(alias)
            assert inside.offer("a", 1) is OfferOutcome.CREATED
        with pytest.raises(ValueError, match=r"transaction\.atomic"):
            inside.offer("b", 1)
        assert queue.stats().total == 1


def test_django_savepoints_are_obeyed(store_url: str) -> None:
    with Queue.open(store_url, "orders") as queue, django_database(store_url) as alias:
        with transaction.atomic(using=alias):
            queue.within(alias).offer("a", 1)
            with suppress(ChangedMyMind), transaction.atomic(using=alias):
                queue.within(alias).offer("b", 1)
                raise ChangedMyMind
        assert [queue.contains(key) for key in "ab"] == [True, False]


def test_an_unknown_alias_is_refused(store_url: str) -> None:
    with (
        Queue.open(store_url, "orders") as queue,
        django_database(store_url),
        pytest.raises(TypeError, match=r"^connection must be .*alias, not the str 'nowhere'$"),
    ):
        queue.within("nowhere")


def test_a_closed_connection_is_refused(store: str, store_url: str) -> None:
    connection: Any
    if store == "sqlite":
        connection = sqlite3.connect(store_url.removeprefix("sqlite:///"))
    elif store == "mariadb":
        connection = connect_mariadb(SyncFace(), store_url)
    else:
        connection = psycopg.connect(store_url)
    connection.close()
    with (
        Queue.open(store_url, "orders") as queue,
        pytest.raises(ValueError, match="connection is closed"),
    ):
        queue.within(connection)


def test_closed_awaiting_connections_are_refused(store: str, store_url: str) -> None:
    async def main() -> None:
        async with AsyncQueue.open(store_url, "orders") as queue:
            for connection in await open_awaiting(store, store_url):
                await close(connection)
                with pytest.raises(ValueError, match="connection is closed"):
                    queue.within(connection)

    asyncio.run(main())


async def open_awaiting(store: str, url: str) -> list[Any]:
    if store == "sqlite":
        return [await aiosqlite.connect(url.removeprefix("sqlite:///"))]
    if store == "mariadb":
        return [await asyncmy.connect(**mariadb_arguments(url))]
    return [await asyncpg.connect(url), await psycopg.AsyncConnection.connect(url)]


async def close(connection: Any) -> None:
    if isinstance(connection, asyncmy.Connection):
        await connection.ensure_closed()
    else:
        await connection.close()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="it has no such mode")
def test_aiosqlite_must_not_commit_each_statement_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "app.db"

    async def main() -> None:
        async with (
            AsyncQueue.open(f"sqlite:///{file}", "orders") as queue,
            aiosqlite.connect(file, autocommit=True) as connection,
        ):
            with pytest.raises(ValueError, match="execute BEGIN on it first"):
                await queue.within(connection).offer("a", 1)
            await connection.execute("BEGIN")
            await queue.within(connection).offer("b", 1)
            await connection.execute("ROLLBACK")
            assert (await queue.stats()).total == 0

    asyncio.run(main())


@pytest.mark.parametrize("driver", ["PyMySQL", "mysqlclient"])
def test_drivers_for_mariadb_must_be_in_a_transaction(mariadb_url: str, driver: str) -> None:
    options = mariadb_arguments(mariadb_url)
    module: Any = mysqlclient() if driver == "mysqlclient" else pymysql
    with (
        Queue.open(mariadb_url, "orders") as queue,
        closing(module.connect(**options, autocommit=True)) as connection,
    ):
        with pytest.raises(ValueError, match="no open transaction"):
            queue.within(connection).offer("a", 1)
        connection.begin()
        queue.within(connection).offer("b", 1)
        connection.rollback()
        with pytest.raises(ValueError, match="no open transaction"):
            queue.within(connection).offer("c", 1)
        connection.autocommit(False)
        queue.within(connection).offer("d", 1)
        connection.rollback()
        assert queue.stats().total == 0


def test_asyncpg_must_be_in_a_transaction(postgres_url: str) -> None:
    async def main() -> None:
        async with AsyncQueue.open(postgres_url, "orders") as queue:
            connection = await asyncpg.connect(postgres_url)
            with pytest.raises(ValueError, match=r"async with connection\.transaction"):
                queue.within(connection)
            await connection.close()

    asyncio.run(main())


def test_asyncpg_may_raise_an_error_with_a_code_of_the_users_own(postgres_url: str) -> None:
    async def main() -> None:
        async with AsyncQueue.open(postgres_url, "orders") as queue:
            connection = await asyncpg.connect(postgres_url)
            await connection.execute("""
                CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
                    BEGIN RAISE EXCEPTION 'enough' USING ERRCODE = 'HR001'; END
                $$;
                CREATE TRIGGER refuse BEFORE INSERT ON duequeue_message
                    FOR EACH ROW EXECUTE FUNCTION refuse()
            """)
            with pytest.raises(StoreError, match="enough") as raised:
                async with connection.transaction():
                    await queue.within(connection).offer("a", 1)
            assert type(raised.value) is StoreError
            await connection.close()

    asyncio.run(main())


def test_nothing_is_refused_by_name(store_url: str) -> None:
    with Queue.open(store_url, "orders") as queue:
        for given, name in [(None, "NoneType"), (7, "int"), (Decimal(7), "decimal.Decimal")]:
            with pytest.raises(TypeError, match=f"^connection must be an? .* not {name}$"):
                queue.within(given)


@pytest.mark.parametrize(
    "given", ["postgresql://app:hunter2@host/app", "user=app password=hunter2"]
)
def test_a_url_is_refused_without_its_password(face: Face, store_url: str, given: str) -> None:
    with (
        face.open(store_url, "orders") as queue,
        pytest.raises(TypeError, match=r"^connection must be .*, not a str$"),
    ):
        queue.within(given)


@pytest.mark.parametrize("store", ["memory", "redis", "http"], indirect=True)
def test_a_store_without_transactions_shows_no_password(store_url: str) -> None:
    with (
        Queue[int].open(store_url, "orders") as queue,
        pytest.raises(TypeError, match="connection str cannot be used") as refused,
    ):
        queue.within("postgresql://me:secret@host/app")
    assert "secret" not in str(refused.value)


def test_awaiting_connections_are_refused_by_a_blocking_queue(store: str, store_url: str) -> None:
    async def main() -> None:
        with Queue.open(store_url, "orders") as queue:
            for connection in await open_awaiting(store, store_url):
                with pytest.raises(TypeError, match="use AsyncQueue for it"):
                    queue.within(connection)
                await close(connection)
            async with async_engine_of(store_url, drivers_of(store)[0]) as engine:
                with pytest.raises(TypeError, match="use AsyncQueue for it"):
                    queue.within(AsyncSession(engine))

    asyncio.run(main())


def test_blocking_connections_are_refused_by_an_awaiting_queue(store_url: str) -> None:
    async def main(*connections: object) -> None:
        async with AsyncQueue.open(store_url, "orders") as queue:
            for connection in connections:
                with pytest.raises(TypeError, match="use Queue for it"):
                    queue.within(connection)

    with (
        engine_of(store_url) as engine,
        Session(engine) as session,
        engine.connect() as connection,
        django_database(store_url) as alias,
    ):
        asyncio.run(main(session, connection, connections[alias], alias))


def test_a_blocking_psycopg_is_refused_by_an_awaiting_queue(postgres_url: str) -> None:
    async def main() -> None:
        async with AsyncQueue.open(postgres_url, "orders") as queue:
            with (
                psycopg.connect(postgres_url) as connection,
                pytest.raises(TypeError, match="use Queue for it"),
            ):
                queue.within(connection)

    asyncio.run(main())


def test_a_file_in_memory_is_another_database(tmp_path: Path) -> None:
    with (
        Queue.open(f"sqlite:///{tmp_path / 'a.db'}", "orders") as queue,
        closing(sqlite3.connect(":memory:")) as connection,
        pytest.raises(SchemaError, match="duequeue migrate"),
    ):
        queue.within(connection).offer("a", 1)


def test_an_attached_file_is_the_queues_own(tmp_path: Path) -> None:
    path = tmp_path / "queue.db"
    with (
        Queue.open(f"sqlite:///{path}", "orders") as queue,
        closing(sqlite3.connect(tmp_path / "app.db")) as connection,
    ):
        connection.execute("ATTACH ? AS queue", [str(path)])
        queue.within(connection).offer("a", 1)
        connection.commit()
        assert queue.contains("a")


def test_a_refused_transaction_of_django_stays_usable(store_url: str, other_url: str) -> None:
    with (
        Queue.open(store_url, "orders") as queue,
        Queue.open(other_url, "orders") as other,
        django_database(other_url) as alias,
    ):
        with transaction.atomic(using=alias):
            with pytest.raises(WrongDatabase):
                queue.within(alias).offer("a", 1)
            other.within(alias).offer("b", 1)
        assert (queue.stats().total, other.stats().total) == (0, 1)


def test_nobody_is_imported_who_was_not_there(tmp_path: Path) -> None:
    code = f"""
import sqlite3, sys
from duequeue import Queue
with Queue.open("sqlite:///{tmp_path}/app.db", "orders") as queue:
    connection = sqlite3.connect("{tmp_path}/app.db")
    queue.within(connection).offer("a", 1)
    connection.close()
print({{"aiosqlite", "asyncpg", "django", "psycopg", "sqlalchemy"}} & sys.modules.keys())
"""
    command = [sys.executable, "-c", code]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (finished.stdout, finished.stderr) == ("set()\n", "")

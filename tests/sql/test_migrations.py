"""The schema: numbered, checked, never half applied, and the same however it came about."""

import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest

from duequeue import History, Queue, SchemaError, StoreError
from duequeue.backends import backend_for
from duequeue.contract.faces import Face
from duequeue.stores.sql import migrations as migrate
from duequeue.stores.sql.catalogue import load_queries
from duequeue.stores.sql.migrations import Migration, load_migrations
from tests.fixtures.postgres import PostgresServer


class Database(Protocol):
    """An empty database, as its owner sees it."""

    dialect: str
    url: str

    def run(self, statement: str) -> list[tuple[Any, ...]]: ...
    def run_script(self, script: str) -> None: ...
    def schema(self) -> list[tuple[Any, ...]]: ...


class SqliteDatabase:
    dialect = "sqlite"

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path}"
        self._connection = sqlite3.connect(path, isolation_level=None)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement).fetchall()

    def run_script(self, script: str) -> None:
        self._connection.executescript(script)

    def schema(self) -> list[tuple[Any, ...]]:
        return self.run("SELECT type, name, sql FROM sqlite_master ORDER BY type, name")

    def close(self) -> None:
        self._connection.close()


class PostgresDatabase:
    dialect = "postgres"

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection = psycopg.connect(url, autocommit=True)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    def run_script(self, script: str) -> None:
        self._connection.execute(script.encode())

    def schema(self) -> list[tuple[Any, ...]]:
        return [*self.run(COLUMNS), *self.run(INDEXES), *self.run(CONSTRAINTS), *self.run(OPTIONS)]

    def close(self) -> None:
        self._connection.close()


COLUMNS = """
    SELECT table_name, ordinal_position, column_name, data_type, collation_name, is_nullable,
        column_default, identity_generation
    FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2
"""
INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"
CONSTRAINTS = """
    SELECT CAST(CAST(conrelid AS regclass) AS text), conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = CAST('public' AS regnamespace) ORDER BY 1, 2
"""
OPTIONS = """
    SELECT relname, relkind, reloptions FROM pg_class
    WHERE relnamespace = CAST('public' AS regnamespace) ORDER BY 1
"""


@pytest.fixture(params=["sqlite", "postgres"])
def new_database(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[], Database]]:
    """A factory of empty databases, of each dialect in turn."""
    with ExitStack() as opened:

        def sqlite() -> Database:
            path = tmp_path / f"{secrets.token_hex(4)}.db"
            return opened.enter_context(closing(SqliteDatabase(path)))

        def postgres() -> Database:
            server: PostgresServer = request.getfixturevalue("postgres_server")
            url = server.create_database()
            opened.callback(server.drop_database, url)
            return opened.enter_context(closing(PostgresDatabase(url)))

        yield sqlite if request.param == "sqlite" else postgres


@pytest.fixture
def database(new_database: Callable[[], Database]) -> Database:
    """An empty database of each dialect."""
    return new_database()


APPLIED = "SELECT number, name, checksum FROM duequeue_migration ORDER BY number"


def known(dialect: str) -> list[tuple[int, str, str]]:
    return [(each.number, each.name, each.checksum) for each in load_migrations(dialect)]


def apply_by_hand(database: Database, migrations: Sequence[Migration]) -> None:
    """Leave a database as an older DueQueue would."""
    database.run_script(load_queries(database.dialect)["create_migrations"])
    for number, name, text in migrations:
        database.run_script(text)
        checksum = Migration(number, name, text).checksum
        database.run(f"INSERT INTO duequeue_migration VALUES ({number}, '{name}', '{checksum}')")  # noqa: S608 - ours


def test_migrations_are_numbered_from_one_without_a_gap() -> None:
    for dialect in ("postgres", "sqlite"):
        numbers = [each.number for each in load_migrations(dialect)]
        assert numbers == list(range(1, len(numbers) + 1))


def test_dialects_have_the_same_migrations() -> None:
    names = [[each.name for each in load_migrations(dialect)] for dialect in ("postgres", "sqlite")]
    assert names[0] == names[1]


def test_opening_applies_and_records_each_migration(database: Database, face: Face) -> None:
    face.open(database.url, "orders").close()
    assert database.run(APPLIED) == known(database.dialect)


def test_opening_again_changes_nothing(database: Database) -> None:
    Queue.open(database.url, "orders").close()
    before = database.schema()
    Queue.open(database.url, "invoices").close()
    Queue.open(database.url, "orders", migrate=False).close()
    assert (database.schema(), database.run(APPLIED)) == (before, known(database.dialect))


def test_an_older_schema_is_brought_up_to_date(database: Database) -> None:
    *older, _ = load_migrations(database.dialect)
    apply_by_hand(database, older)
    with pytest.raises(SchemaError, match="out of date"):
        Queue.open(database.url, "orders", migrate=False)
    with Queue.open(database.url, "orders") as queue:
        queue.offer("a", 1)
    assert database.run(APPLIED) == known(database.dialect)


def test_a_missing_schema_is_left_alone_when_told_so(database: Database, face: Face) -> None:
    with pytest.raises(SchemaError, match=r"migrate=False.*duequeue migrate"):
        face.open(database.url, "orders", migrate=False)
    assert [row for row in database.schema() if "duequeue" in str(row)] == []


def test_the_history_leaves_a_missing_schema_alone_too(database: Database) -> None:
    with pytest.raises(SchemaError, match=r"migrate=False.*duequeue migrate"):
        History.open(database.url, migrate=False)
    assert [row for row in database.schema() if "duequeue" in str(row)] == []
    with History.open(database.url) as history:
        assert history.days() == []
    assert database.run(APPLIED) == known(database.dialect)


def test_a_schema_made_by_hand_is_as_good(new_database: Callable[[], Database]) -> None:
    ours, theirs = new_database(), new_database()
    Queue.open(ours.url, "orders").close()
    theirs.run_script(backend_for(theirs.url).schema_script())
    assert (theirs.schema(), theirs.run(APPLIED)) == (ours.schema(), ours.run(APPLIED))
    with Queue.open(theirs.url, "orders", migrate=False) as queue:
        queue.offer("a", 1)
        delivery = queue.try_poll()
        assert delivery is not None
    with Queue.open(theirs.url, "orders", migrate=False, history=True) as queue:
        assert queue.ack_many([delivery]) == 1
        assert [one.key for one in queue.history()] == ["a"]


def test_an_edited_migration_is_noticed(database: Database) -> None:
    Queue.open(database.url, "orders").close()
    database.run("UPDATE duequeue_migration SET checksum = 'another' WHERE number = 1")
    for migrate_too in (True, False):
        with pytest.raises(SchemaError, match=r"0001_messages.*edited"):
            Queue.open(database.url, "orders", migrate=migrate_too)


def test_a_newer_schema_is_refused(database: Database) -> None:
    Queue.open(database.url, "orders").close()
    database.run("INSERT INTO duequeue_migration VALUES (9999, '9999_the_future', 'x')")
    before = database.schema()
    for migrate_too in (True, False):
        with pytest.raises(SchemaError, match=r"9999_the_future.*newer.*upgrade DueQueue"):
            Queue.open(database.url, "orders", migrate=migrate_too)
    assert database.schema() == before


def test_a_migration_that_fails_leaves_nothing_behind(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = len(load_migrations(database.dialect)) + 1
    broken = Migration(number, f"{number:04}_broken", "CREATE TABLE half (id INT);\nNONSENSE;\n")
    more = (*load_migrations(database.dialect), broken)
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "load_migrations", lambda _: more)
        with pytest.raises(StoreError, match="syntax error") as raised:
            Queue.open(database.url, "orders")
        assert type(raised.value) is StoreError
    assert [row for row in database.schema() if {"half", "duequeue_kind"} & set(row)] == []
    Queue.open(database.url, "orders").close()
    assert database.run(APPLIED) == known(database.dialect)

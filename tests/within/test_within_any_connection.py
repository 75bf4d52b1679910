"""`within` works on a caller's connection however its owner likes rows and cursors."""

import importlib
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
from psycopg.rows import dict_row, namedtuple_row
from pymysql.cursors import DictCursor

from duequeue import OfferOutcome, Queue
from duequeue.stores.sql.postgres.settings import PostgresSettings
from tests.docs.pages import ROOT
from tests.fixtures.connections import mariadb_arguments
from tests.fixtures.mysqlclient import mysqlclient

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def as_dict(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    """The row factory of the standard library's own documentation."""
    return dict(zip((column[0] for column in cursor.description), row, strict=True))


def use(queue: Queue[Any]) -> None:
    """Create, update, ignore, claim and settle."""
    outcomes = [queue.offer("a", payload, LONG_AGO) for payload in (1, 2, 2)]
    assert outcomes == [OfferOutcome.CREATED, OfferOutcome.UPDATED, OfferOutcome.IGNORED]
    delivery = queue.try_poll()
    assert delivery is not None
    assert (delivery.payload, delivery.bury("no"), queue.revive("a")) == (2, True, True)
    assert queue.stats().due == 1


@pytest.mark.parametrize("factory", [sqlite3.Row, as_dict])
def test_rows_of_sqlite(tmp_path: Path, factory: Callable[..., Any]) -> None:
    path = tmp_path / "app.db"
    with Queue.open(f"sqlite:///{path}", "orders") as queue, closing(sqlite3.connect(path)) as mine:
        mine.row_factory = factory
        use(queue.within(mine))
        mine.commit()
        assert queue.stats().due == 1


def test_texts_of_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with Queue.open(f"sqlite:///{path}", "orders") as queue, closing(sqlite3.connect(path)) as mine:
        mine.text_factory = bytes
        use(queue.within(mine))
        assert mine.execute("SELECT 'as before'").fetchone() == (b"as before",)
        mine.commit()
        assert queue.stats().due == 1


@pytest.mark.parametrize("factory", [dict_row, namedtuple_row])
def test_rows_of_psycopg(postgres_url: str, factory: Any) -> None:
    with (
        Queue.open(postgres_url, "orders") as queue,
        psycopg.connect(postgres_url, row_factory=factory) as mine,
    ):
        use(queue.within(mine))
        mine.commit()
        assert queue.stats().due == 1


@pytest.mark.parametrize("driver", ["PyMySQL", "mysqlclient"])
def test_rows_of_drivers_for_mariadb(mariadb_url: str, driver: str) -> None:
    options = mariadb_arguments(mariadb_url)
    if driver == "PyMySQL":
        options |= {"cursorclass": DictCursor, "use_unicode": False, "ssl_disabled": True}
        opening = pymysql.connect(**options)
    else:
        module = mysqlclient()
        cursors = importlib.import_module("MySQLdb.cursors")
        opening = module.connect(**options, cursorclass=cursors.DictCursor, use_unicode=False)
    with Queue.open(mariadb_url, "orders") as queue, closing(opening) as mine:
        use(queue.within(mine))
        mine.commit()
        assert queue.stats().due == 1


def test_django_on_pymysql(mariadb_url: str) -> None:
    """PyMySQL takes the place of mysqlclient in a whole process, so this has one of its own."""
    code = f"""
import pymysql
pymysql.install_as_MySQLdb()
from django.db import connections, transaction
from duequeue import Queue
from tests.within.django_database import django_database
with Queue.open({mariadb_url!r}, "orders") as queue, django_database({mariadb_url!r}) as alias:
    with transaction.atomic(using=alias):
        print(type(connections[alias].connection).__module__)
        print(queue.within(alias).offer("a", 1).value)
        print(queue.contains("a"))
    print(queue.contains("a"))
"""
    command = [sys.executable, "-c", code]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    output = "pymysql.connections\ncreated\nFalse\nTrue\n"
    assert (finished.stdout, finished.stderr) == (output, "")


def test_cursors_that_bind_in_the_client(postgres_url: str) -> None:
    with (
        Queue.open(postgres_url, "orders") as queue,
        psycopg.connect(postgres_url, cursor_factory=psycopg.ClientCursor) as mine,
    ):
        use(queue.within(mine))
        mine.commit()
        assert queue.stats().due == 1


def test_a_connection_from_before_the_queue(postgres_url: str) -> None:
    code = f"""
import psycopg
from duequeue import Queue
with psycopg.connect({postgres_url!r}) as mine:
    mine.execute("SELECT 1")
    with Queue.open({postgres_url!r}, "orders") as queue:
        print(queue.within(mine).offer("a", 1).value)
"""
    command = [sys.executable, "-c", code]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (finished.stdout, finished.stderr) == ("created\n", "")


def test_behind_a_pooler_nothing_is_left_on_a_connection(postgres_url: str) -> None:
    settings = PostgresSettings(postgres_url, pooled_by_transaction=True)
    assert settings.connection_arguments["prepare_threshold"] is None
    assert "SET" not in settings.first_statements
    with Queue.open(f"{postgres_url}?pooler=transaction", "orders") as queue:
        use(queue)


def test_a_binary_copy_of_arrays_goes_on_as_before(postgres_url: str) -> None:
    with Queue.open(postgres_url, "orders") as queue, psycopg.connect(postgres_url) as mine:
        mine.execute("CREATE TABLE lists (texts text [], numbers bigint [])")
        use(queue.within(mine))
        with mine.cursor().copy("COPY lists FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["text[]", "bigint[]"])
            copy.write_row((["a", "b"], [1, 2]))
        assert mine.execute("SELECT * FROM lists").fetchall() == [(["a", "b"], [1, 2])]

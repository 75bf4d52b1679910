"""Listing queues creates no file and no table, and does not even change the mode of a file."""

import sqlite3
from pathlib import Path

import psycopg
import pytest

from duequeue import Queue, SchemaError, StoreError, queues
from tests.fixtures.postgres import PostgresServer


def test_a_missing_file_is_an_error_and_stays_missing(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"there is no file .*app\.db: open a queue"):
        queues(f"sqlite:///{tmp_path}/app.db")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_somebody_else_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE other (id INTEGER)")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(SchemaError, match="no DueQueue tables: open a queue in it, or run"):
        queues(f"sqlite:///{file}")
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_is_not_a_database_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database at all, " * 100)
    with pytest.raises(StoreError, match="is not an SQLite database"):
        queues(f"sqlite:///{file}")


def test_a_file_with_characters_of_a_url_is_found(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/50%25 #1.db"
    with Queue.open(url, "orders"):
        pass
    assert queues(url) == [("orders", "json")]


def test_queues_that_nobody_has_open_are_listed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/app.db"
    with Queue.open(url, "orders") as queue:
        queue.offer("a", 1)
    assert queues(url) == [("orders", "json")]


def test_a_database_without_tables_is_an_error_and_gets_none(
    postgres_server: PostgresServer,
) -> None:
    url = postgres_server.create_database()
    try:
        with pytest.raises(SchemaError, match="no DueQueue tables: open a queue in it, or run"):
            queues(url)
        with psycopg.connect(url) as connection:
            tables = connection.execute("SELECT to_regclass('duequeue_kind')").fetchone()
        assert tables == (None,)
    finally:
        postgres_server.drop_database(url)


def test_a_newer_schema_does_not_hide_the_queues(tmp_path: Path) -> None:
    file = tmp_path / "app.db"
    with Queue.open(f"sqlite:///{file}", "orders"):
        pass
    with sqlite3.connect(file) as connection:
        connection.execute("INSERT INTO duequeue_migration VALUES (9999, '9999_later', 'x')")
    connection.close()
    assert queues(f"sqlite:///{file}") == [("orders", "json")]


def test_a_process_without_memory_queues_has_none() -> None:
    assert queues("memory:nobody opened this") == []

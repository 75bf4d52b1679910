"""`duequeue migrate`: the tables, or what makes them."""

import sqlite3
from pathlib import Path

import psycopg
import pytest

from duequeue import Queue, SchemaError
from duequeue.stores.sql.postgres.roles import roles_script
from tests.cli.command import run
from tests.cli.conftest import DueQueue


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'queue.db'}"
    return str(request.getfixturevalue("postgres_url"))


def test_tables_are_made_once(bare: DueQueue, empty_url: str) -> None:
    with pytest.raises(SchemaError):
        Queue.open(empty_url, "orders", migrate=False)
    first, second = run("migrate", url=empty_url), bare("migrate", "--url", empty_url)
    assert (first.returncode, second.status) == (0, 0)
    assert "applied 0001" in first.stdout
    assert "applied" not in second.out
    assert second.out.endswith("is up to date\n")
    Queue.open(empty_url, "orders", migrate=False).close()


def test_the_printed_statements_make_the_same_tables(bare: DueQueue, empty_url: str) -> None:
    printed = bare("migrate", "--sql", "--url", empty_url)
    assert printed.status == 0
    if empty_url.startswith("sqlite"):
        with sqlite3.connect(empty_url.removeprefix("sqlite:///")) as file:
            file.executescript(printed.out)
        file.close()
    else:
        with psycopg.connect(empty_url) as connection:
            connection.execute(printed.out)
    Queue.open(empty_url, "orders", migrate=False).close()


@pytest.mark.parametrize("url", ["postgresql://nowhere.example/app", "postgresql+asyncpg://"])
def test_the_statements_are_printed_without_a_server(bare: DueQueue, url: str) -> None:
    printed = bare("migrate", "--sql", "--url", url)
    assert printed.status == 0
    assert printed.out.startswith("CREATE TABLE")


def test_the_printed_roles_are_those_of_the_store(bare: DueQueue, tmp_path: Path) -> None:
    printed = bare("migrate", "--roles", "--url", "postgresql://nowhere.example/app")
    assert (printed.status, printed.out) == (0, f"{roles_script()}\n")
    for url in (f"sqlite:///{tmp_path / 'queue.db'}", "mariadb://nowhere.example/app"):
        refused = bare("migrate", "--roles", "--url", url)
        assert refused.status == 1
        assert "--roles is for PostgreSQL" in refused.err


def test_a_database_that_is_not_there(bare: DueQueue, tmp_path: Path) -> None:
    ran = bare("migrate", "--url", f"sqlite:///{tmp_path / 'missing' / 'queue.db'}")
    assert ran.status == 1
    assert ran.err.startswith("duequeue: ")
    assert "Traceback" not in ran.err

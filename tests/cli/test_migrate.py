"""`duequeue migrate`: the tables, or what makes them."""

import sqlite3
from importlib.metadata import version
from pathlib import Path

import psycopg
import pytest

from duequeue import Queue, SchemaError
from duequeue.stores.sql.postgres.roles import roles_script
from tests.cli.command import run


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'queue.db'}"
    return str(request.getfixturevalue("postgres_url"))


def test_tables_are_made_once(empty_url: str) -> None:
    with pytest.raises(SchemaError):
        Queue.open(empty_url, "orders", migrate=False)
    first, second = run("migrate", "--url", empty_url), run("migrate", url=empty_url)
    assert (first.returncode, second.returncode) == (0, 0)
    assert "applied 0001" in first.stdout
    assert "applied" not in second.stdout
    assert second.stdout.endswith("is up to date\n")
    Queue.open(empty_url, "orders", migrate=False).close()


def test_the_printed_statements_make_the_same_tables(empty_url: str) -> None:
    printed = run("migrate", "--sql", url=empty_url)
    assert printed.returncode == 0
    if empty_url.startswith("sqlite"):
        with sqlite3.connect(empty_url.removeprefix("sqlite:///")) as file:
            file.executescript(printed.stdout)
        file.close()
    else:
        with psycopg.connect(empty_url) as connection:
            connection.execute(printed.stdout)
    Queue.open(empty_url, "orders", migrate=False).close()


@pytest.mark.parametrize("url", ["postgresql://nowhere.example/app", "postgresql+asyncpg://"])
def test_the_statements_are_printed_without_a_server(url: str) -> None:
    printed = run("migrate", "--sql", "--url", url)
    assert printed.returncode == 0
    assert printed.stdout.startswith("CREATE TABLE")


def test_the_printed_roles_are_those_of_the_store(tmp_path: Path) -> None:
    printed = run("migrate", "--roles", "--url", "postgresql://nowhere.example/app")
    assert (printed.returncode, printed.stdout) == (0, f"{roles_script()}\n")
    for url in (f"sqlite:///{tmp_path / 'queue.db'}", "mariadb://nowhere.example/app"):
        refused = run("migrate", "--roles", "--url", url)
        assert refused.returncode == 1
        assert "--roles is for PostgreSQL" in refused.stderr


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    ran = run("migrate", "--url", f"sqlite:///{tmp_path / 'missing' / 'queue.db'}")
    assert ran.returncode == 1
    assert ran.stderr.startswith("duequeue: ")
    assert "Traceback" not in ran.stderr


def test_the_version_is_told() -> None:
    told = run("--version")
    assert (told.returncode, told.stdout) == (0, f"duequeue {version('duequeue')}\n")

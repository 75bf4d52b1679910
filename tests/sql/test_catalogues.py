"""The queries of the dialects: the same names, the same parameters, each of them in use."""

import ast
import re
import sqlite3
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import psycopg
import pytest
from psycopg.pq import ExecStatus

from duequeue import Queue
from duequeue.stores.sql.catalogue import load_queries

POSTGRES = load_queries("postgres")
SQLITE = load_queries("sqlite")

PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
COMMANDS = {"Query", "QueryEach", "Execute"}


def parameters(query: str) -> list[str]:
    """The parameters of a query, in the order in which they are first named."""
    return list(dict.fromkeys(PARAMETER.findall(query)))


def modules() -> Iterator[ast.AST]:
    """The code of the SQL stores."""
    folder = Path(str(files("duequeue.stores.sql")))
    for path in folder.rglob("*.py"):
        yield ast.parse(path.read_text())


def strings_in_code() -> set[str]:
    return {
        node.value
        for module in modules()
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def queries_in_commands() -> set[str]:
    """The names that commands are made with."""
    return {
        node.args[0].value
        for module in modules()
        for node in ast.walk(module)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in COMMANDS
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def test_dialects_have_the_same_queries() -> None:
    assert POSTGRES.keys() == SQLITE.keys()


@pytest.mark.parametrize("name", POSTGRES)
def test_dialects_have_the_same_parameters(name: str) -> None:
    assert set(parameters(POSTGRES[name])) == set(parameters(SQLITE[name]))


def test_every_query_is_used() -> None:
    assert POSTGRES.keys() - strings_in_code() == set()


def test_every_used_query_exists() -> None:
    used = queries_in_commands()
    assert used, "no commands found: is this test still looking in the right place?"
    assert used - POSTGRES.keys() == set()


@pytest.mark.parametrize("name", SQLITE)
def test_sqlite_understands(name: str, tmp_path: Path) -> None:
    path = tmp_path / "queue.db"
    Queue.open(f"sqlite:///{path}", "orders").close()
    connection = sqlite3.connect(path)
    unbound = dict.fromkeys(parameters(SQLITE[name]))
    connection.execute(f"EXPLAIN {SQLITE[name]}", unbound)
    connection.close()


# What the server cannot tell from the query, and psycopg tells it.
INT4, INT8 = 23, 20
GIVEN_TYPES = {"kind_id": INT4, "now": INT8}


@pytest.mark.parametrize("name", POSTGRES)
def test_postgres_understands(name: str, ready_database: str) -> None:
    names = parameters(POSTGRES[name])
    query = PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", POSTGRES[name])
    types = [GIVEN_TYPES.get(each, 0) for each in names]
    with psycopg.connect(ready_database) as connection:
        result = connection.pgconn.prepare(b"", query.encode(), types)
        assert result.status == ExecStatus.COMMAND_OK, result.error_message.decode()


NOTES = ", replaced_asked_at = stored.asked_at, replaced_attempts = stored.attempt"


def write(query: str) -> str:
    """What a query writes into the table of messages, on one line."""
    statement = query.partition("INSERT INTO duequeue_message")[2].partition("RETURNING")[0]
    return " ".join(statement.split())


@pytest.mark.parametrize("name", ["offer_messages", "merge_messages", "merge_staged"])
@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_with_a_history_the_same_is_written(dialect: str, name: str) -> None:
    """They are written out twice, and must not drift apart: one notes what it overwrites."""
    queries = {"postgres": POSTGRES, "sqlite": SQLITE}[dialect]
    noting = write(queries[f"{name}_with_history"])
    assert NOTES in noting
    assert noting.replace(NOTES, "") == write(queries[name])

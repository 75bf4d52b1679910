"""The queries of the dialects: the same names, the same parameters, each of them in use."""

import ast
import re
import sqlite3
from collections.abc import Iterator
from importlib.resources import files
from itertools import combinations
from pathlib import Path

import psycopg
import pytest
from psycopg.pq import ExecStatus

from duequeue import Queue
from duequeue.bulk.mariadb import STEPS as BULK_STEPS
from duequeue.bulk.sql import texts_of
from duequeue.stores.sql.catalogue import (
    FACTS,
    QUERIES,
    WITH_HISTORY,
    Entry,
    entries,
    load_queries,
    queries_that,
    shared_entries,
)
from duequeue.stores.sql.mariadb.statements import prepared
from duequeue.stores.sql.mariadb.steps import STEPS

DIALECTS = ("mariadb", "postgres", "sqlite")


def for_batches(dialect: str) -> dict[str, Entry]:
    """The queries for whole batches."""
    shared, own = map(entries, texts_of(dialect))
    return shared | own


def queries_of(dialect: str) -> dict[str, str]:
    """The texts of a store's queries, and of those for whole batches."""
    return load_queries(dialect) | {name: each.text for name, each in for_batches(dialect).items()}


POSTGRES = queries_of("postgres")
SQLITE = queries_of("sqlite")
MARIADB = queries_of("mariadb")
# Each dialect has questions of its own for `duequeue doctor`.
POSTGRES_QUESTIONS = load_queries("postgres", "examining.sql")
SQLITE_QUESTIONS = load_queries("sqlite", "examining.sql")
MARIADB_QUESTIONS = load_queries("mariadb", "examining.sql")
QUESTIONS = POSTGRES_QUESTIONS | SQLITE_QUESTIONS | MARIADB_QUESTIONS

PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
COMMANDS = {"Query", "QueryEach", "Execute"}


def parameters(query: str) -> list[str]:
    """The parameters of a query, in the order in which they are first named."""
    return list(dict.fromkeys(PARAMETER.findall(query)))


def modules() -> Iterator[ast.AST]:
    """The code of the SQL stores, and that for whole batches."""
    for package in ("duequeue.stores.sql", "duequeue.bulk"):
        for path in Path(str(files(package))).rglob("*.py"):
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


def test_mariadb_has_the_same_queries_or_steps_in_their_place() -> None:
    asked = POSTGRES.keys() - {name for name in POSTGRES if name.endswith("_by_function")}
    assert asked - MARIADB.keys() - STEPS.keys() - BULK_STEPS.keys() == set()
    assert own("mariadb").keys() & (STEPS.keys() | BULK_STEPS.keys()) == set()


def own(dialect: str) -> dict[str, str]:
    """The texts that a dialect does not share, on one line and without regard to case."""
    text = files(f"duequeue.stores.sql.{dialect}").joinpath(QUERIES).read_text("utf-8")
    found = entries(text) | entries(texts_of(dialect)[1])
    return {name: one_line(entry.text) for name, entry in found.items()}


def shared() -> dict[str, str]:
    """The texts that several dialects take, on one line and without regard to case."""
    found = {**shared_entries(), **entries(texts_of("postgres")[0])}
    return {name: one_line(entry.text) for name, entry in found.items()}


def one_line(text: str) -> str:
    return " ".join(text.split()).casefold()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_dialect_repeats_a_shared_text(dialect: str) -> None:
    assert own(dialect).items() & shared().items() == set()


def test_what_dialects_have_in_common_is_shared() -> None:
    for one, other in combinations(DIALECTS, 2):
        assert own(one).items() & own(other).items() == set()


def test_what_is_shared_serves_several_dialects() -> None:
    for name in shared():
        assert sum(name not in own(dialect) for dialect in DIALECTS) > 1, name


def test_mysql_is_never_asked_to_return_what_it_writes() -> None:
    parts = [part for name in MARIADB for part in prepared(name, is_mysql=True).first]
    assert not [part.text for part in parts if "RETURNING" in part.text]


def test_what_an_offer_returns_on_mariadb_it_reads_again_on_mysql() -> None:
    (returning,) = prepared("offer_messages", is_mysql=False).first
    write, read = prepared("offer_messages", is_mysql=False, reads_again=True).first
    assert returning.text.startswith(f"{write.text}\nRETURNING `key`")
    assert write.each == returning.each
    assert read.text.startswith("SELECT `key`")


@pytest.mark.parametrize(("name", "on_mysql"), queries_that("on mysql", "mariadb").items())
def test_mysql_and_mariadb_write_the_same(name: str, on_mysql: str) -> None:
    """They are written out twice, and must not drift apart: MySQL has a name for the new row."""
    history = WITH_HISTORY if name.endswith(WITH_HISTORY) else ""
    text = MARIADB[on_mysql + history].replace("\nAS new\n", "\n")
    assert re.sub(r"\bnew\.(\w+)", r"VALUES(\1)", text) == MARIADB[name]


@pytest.mark.parametrize("name", MARIADB)
def test_a_query_of_mariadb_can_be_pasted(name: str) -> None:
    """All that is not SQL stands in comments."""
    assert not re.search(r"[{}]|:held|:of_", MARIADB[name])


def test_every_query_is_used() -> None:
    every = POSTGRES.keys() | MARIADB.keys() | QUESTIONS.keys()
    with_history = {name + WITH_HISTORY for name in strings_in_code() | named_by_facts()}
    assert every - strings_in_code() - with_history - named_by_facts() == set()


def named_by_facts() -> set[str]:
    """The queries that the headers of others name."""
    facts = FACTS.keys() - {"returning", "alone"}
    return {query for fact in facts for query in queries_that(fact, "mariadb").values() if query}


def test_facts_name_queries_of_their_catalogue() -> None:
    assert named_by_facts() - MARIADB.keys() == set()


@pytest.mark.parametrize("fact", FACTS)
def test_every_fact_is_stated(fact: str) -> None:
    assert any(queries_that(fact, dialect) for dialect in DIALECTS)


@pytest.mark.parametrize("fact", ["red", "reads often"])
def test_an_unknown_fact_is_refused(fact: str) -> None:
    with pytest.raises(LookupError, match="next_due states"):
        entries(f"-- name: next_due\n-- reads\n-- {fact}\n-- A comment.\nSELECT 1;\n")


def test_marked_lines_belong_to_the_same_query_with_a_history() -> None:
    text = "-- name: drop\n-- reads\n--h WITH a AS (\nDELETE\n--h   RETURNING 1)\n--h SELECT 1\n;\n"
    assert entries(text) == {
        "drop": ("DELETE", {"reads": ""}),
        "drop_with_history": ("WITH a AS (\nDELETE\n  RETURNING 1)\nSELECT 1", {"reads": ""}),
    }


def test_what_follows_a_comment_is_not_a_fact() -> None:
    text = "-- name: next_due\n-- reads\n-- This comment\n-- goes on.\nSELECT 1;\n"
    assert entries(text) == {"next_due": ("SELECT 1", {"reads": ""})}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_asks_all_its_questions_and_no_others(dialect: str) -> None:
    """Some have the same names in several dialects, so each looks only at its own code."""
    code = files(f"duequeue.stores.sql.{dialect}").joinpath("examining.py").read_text("utf-8")
    asked = set(re.findall('"(examine_[a-z_]+)"', code))
    assert asked == load_queries(dialect, "examining.sql").keys()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_query_for_batches_hides_another(dialect: str) -> None:
    assert load_queries(dialect).keys() & for_batches(dialect).keys() == set()


def test_no_question_hides_a_query() -> None:
    assert (POSTGRES.keys() | MARIADB.keys()) & QUESTIONS.keys() == set()


def test_every_used_query_exists() -> None:
    used = queries_in_commands()
    assert used, "no commands found: is this test still looking in the right place?"
    known = POSTGRES.keys() | MARIADB.keys() | QUESTIONS.keys()
    assert used - known == set()


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

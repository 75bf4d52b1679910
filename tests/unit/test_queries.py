"""The loader of `queries.sql`."""

import re

import pytest

from duequeue.bulk.sql import texts_of
from duequeue.stores.sql.catalogue import entries, load_queries

DIALECTS = ["postgres", "sqlite"]
BEGINNINGS = "SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|ALTER TABLE|(UN)?LOCK TABLES"


def every_query(dialect: str) -> dict[str, str]:
    """The queries of a store, and those for whole batches."""
    for_batches = [each for text in texts_of(dialect) for each in entries(text).items()]
    return load_queries(dialect) | {name: entry.text for name, entry in for_batches}


@pytest.mark.parametrize("dialect", [*DIALECTS, "mariadb"])
def test_queries_are_whole_and_bare(dialect: str) -> None:
    for name, query in every_query(dialect).items():
        assert re.fullmatch(r"[a-z_]+", name)
        assert query == query.strip()
        assert "--" not in query, name
        assert not query.endswith(";"), name
        assert re.match(
            r"SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|ALTER TABLE|(UN)?LOCK TABLES|SAVEPOINT|SET"
            r"|SHOW|KILL QUERY|DO",
            query,
        ), name


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_query_is_one_statement(dialect: str) -> None:
    assert [name for name, query in every_query(dialect).items() if ";" in query] == []


def test_comments_inside_are_dropped() -> None:
    claim = load_queries("postgres")["claim_messages"]
    assert claim.startswith("UPDATE duequeue_message")
    assert "RETURNING" in claim


def test_an_unknown_dialect_has_none() -> None:
    with pytest.raises(ModuleNotFoundError):
        load_queries("esperanto")

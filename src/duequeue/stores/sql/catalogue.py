"""Load the named queries of a dialect's files of SQL, and what their headers say about them.

Queries with the same text in several dialects are in `shared.sql`; a dialect may have its own text.

`-- name: next_due` begins a query. Right below it, each fact about it has a line of its own, such
as `-- reads`, or `-- undone by: unlock_history` if the fact names another query. Comments follow.

A line that begins with `--h` belongs to the query only in a queue that keeps a history. The query
with these lines has the same name, with `_with_history` behind it, and the same facts.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

FACTS: Mapping[str, str] = {
    "reads": "It only reads, and is a whole operation by itself, so SQLite needs no writer for it.",
    "not awaited": "Its commit does not wait for the disk on SQLite. If a loss of power undoes a "
    "lease, the message is only delivered again. The next commit that waits includes the lease.",
    "undone by": "MariaDB sends the named query at the end of the operation.",
    "on mysql": "MySQL takes the named query in its place.",
    "looks first": "MariaDB first sends the named query, which finds where to begin.",
    "locks first": "After a deadlock, MariaDB first locks with the named query.",
    "returning": "Without a history, MariaDB returns this and needs only its first statement.",
    "first is enough": "If all of many messages are new, MariaDB needs only its first statement.",
    "alone": "Without a history, MariaDB needs only its first, or last, statement for one message.",
}

QUERIES = "queries.sql"
WITH_HISTORY = "_with_history"

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*$\n?", re.MULTILINE)
_OF_HISTORY = re.compile(r"^--h ", re.MULTILINE)
_HEADER = re.compile(r"\n(?:-- [a-z].*\n)*")


class Entry(NamedTuple):
    """The text of a query, and the facts that its header states."""

    text: str
    facts: Mapping[str, str]


@cache
def load_queries(dialect: str, file: str = QUERIES) -> dict[str, str]:
    """Return the queries of a dialect by name, without their comments."""
    return {name: entry.text for name, entry in _load(dialect, file).items()}


@cache
def catalogue(dialect: str) -> dict[str, str]:
    """Return the texts of all queries that the sessions of a dialect know."""
    return load_queries(dialect) | load_queries(dialect, "examining.sql")


def add_queries(dialect: str, texts: Iterable[str]) -> None:
    """Make known the queries of other files of SQL; those of later files count more."""
    added = dict[str, Entry]()
    for text in texts:
        added |= entries(text)
    catalogue(dialect).update((name, entry.text) for name, entry in added.items())
    for fact in FACTS:
        queries_that(fact, dialect).update(_stating(fact, added))


@cache
def queries_that(fact: str, dialect: str) -> dict[str, str]:
    """Return the names of the queries whose headers state a fact, with the query it names."""
    return _stating(fact, _load(dialect, QUERIES))


def _stating(fact: str, found: Mapping[str, Entry]) -> dict[str, str]:
    return {name: entry.facts[fact] for name, entry in found.items() if fact in entry.facts}


@cache
def _load(dialect: str, file: str) -> dict[str, Entry]:
    own = entries(files(f"{__package__}.{dialect}").joinpath(file).read_text("utf-8"))
    return {**shared_entries(), **own} if file == QUERIES else own


@cache
def shared_entries() -> Mapping[str, Entry]:
    """Return the queries that are not of one dialect."""
    return entries(files(__package__).joinpath("shared.sql").read_text("utf-8"))


def entries(text: str) -> dict[str, Entry]:
    """Return the queries of a file by name."""
    _, *parts = _NAME.split(text)
    found = dict[str, Entry]()
    for name, body in zip(parts[0::2], parts[1::2], strict=True):
        found[name] = _entry(name, body)
        if _OF_HISTORY.search(body):
            found[name + WITH_HISTORY] = _entry(name, _OF_HISTORY.sub("", body))
    return found


def _entry(name: str, body: str) -> Entry:
    header = _HEADER.match(body)
    lines = header[0].splitlines()[1:] if header else []
    facts = {}
    for line in lines:
        fact, _, value = line.removeprefix("-- ").partition(": ")
        if fact not in FACTS:
            raise LookupError(f"{name} states {fact!r}, which is not one of {', '.join(FACTS)}")
        facts[fact] = value
    return Entry(_COMMENT.sub("", body).strip().removesuffix(";").rstrip(), facts)

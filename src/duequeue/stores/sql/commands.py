"""The commands that an SQL operation may give to its session."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

Row: TypeAlias = tuple[Any, ...]
Parameters: TypeAlias = Mapping[str, Any]

NO_PARAMETERS: Parameters = {}


class Query(NamedTuple):
    """Run a named query; the reply is its rows."""

    name: str
    parameters: Parameters = NO_PARAMETERS


class QueryEach(NamedTuple):
    """Run a named query for many sets of parameters, atomically; the reply is all the rows.

    On a server this is one statement with arrays, in an embedded database a loop in a transaction.
    """

    name: str
    parameters: Parameters
    columns: Sequence[str]
    each: Sequence[Row]


class QueriesInTurn(NamedTuple):
    """Run queries for many sets of parameters in turn, atomically; the reply is the rows of each.

    A server is sent all of them at once, which saves the round trips of a transaction.
    """

    queries: Sequence[QueryEach]


class Execute(NamedTuple):
    """Run a named query for its effect; the reply is the number of rows it touched."""

    name: str
    parameters: Parameters = NO_PARAMETERS


class SqlScript(NamedTuple):
    """Run the statements of a migration."""

    text: str


class Begin(NamedTuple):
    """Begin a transaction that is committed with the operation, or rolled back on an error.

    An operation of a single statement does not need one, and saves the round trips.
    """


BEGIN = Begin()

Command: TypeAlias = Query | QueryEach | QueriesInTurn | Execute | SqlScript | Begin

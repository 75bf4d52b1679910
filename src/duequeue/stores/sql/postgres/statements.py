"""Commands as psycopg takes them, that is, a statement and its parameters."""

import re
from functools import cache

from duequeue.stores.sql.catalogue import load_queries
from duequeue.stores.sql.commands import Execute, Parameters, Query, QueryEach, Script
from duequeue.stores.sql.postgres.adapters import arrays
from duequeue.stores.sql.postgres.roles import calls

_PARAMETER = re.compile(r":([a-z_]+)")


@cache
def queries() -> dict[str, bytes]:
    """Return the queries with psycopg's placeholders."""
    return {
        name: _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%")).encode()
        for name, text in (load_queries("postgres") | calls()).items()
    }


def statement(command: Query | QueryEach | Execute | Script) -> tuple[bytes, Parameters | None]:
    """Return the statement and parameters of a command; sets of parameters become arrays."""
    match command:
        case Query(name, parameters) | Execute(name, parameters):
            return queries()[name], parameters
        case QueryEach(name, parameters, columns, each):
            return queries()[name], {**parameters, **arrays(columns, each)}
        case Script(text):
            return text.encode(), None

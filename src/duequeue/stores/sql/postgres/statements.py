"""Commands as psycopg takes them, that is, a statement and its parameters."""

import re
from functools import cache
from time import monotonic

from duequeue.stores.sql.catalogue import catalogue
from duequeue.stores.sql.commands import Execute, Parameters, Query, QueryEach, SqlScript
from duequeue.stores.sql.postgres.adapters import arrays
from duequeue.stores.sql.postgres.roles import calls

# An offer waits for locked rows for this share of the time that its call has left.
SHARE_FOR_LOCKS = 0.8

_PARAMETER = re.compile(r":([a-z_]+)")


@cache
def texts() -> dict[str, str]:
    """Return the queries as they are written."""
    found = catalogue("postgres")
    found.update(calls())
    return found


class _Placeholders(dict[str, bytes]):
    """The queries with psycopg's placeholders; each is made when it is first needed."""

    def __missing__(self, name: str) -> bytes:
        text = texts()[name].replace("%", "%%")
        made = self[name] = _PARAMETER.sub(r"%(\1)s", text).encode()
        return made


@cache
def queries() -> dict[str, bytes]:
    """Return the queries with psycopg's placeholders, by name."""
    return _Placeholders()


def statement(
    command: Query | QueryEach | Execute | SqlScript, ends_at: float | None = None
) -> tuple[bytes, Parameters | None]:
    """Return the statement and parameters of a command; sets of parameters become arrays.

    If the call ends at some instant of the monotonic clock, an offer stops waiting for rows that
    others have locked while there is still time to report that.
    """
    match command:
        case Query(name, parameters) | Execute(name, parameters):
            return queries()[name], parameters
        case QueryEach(name, parameters, columns, each):
            together = {**parameters, **arrays(columns, each)}
            if ends_at is not None and together.get("lock_timeout", "") is None:
                wait = max((ends_at - monotonic()) * SHARE_FOR_LOCKS, 0.001)
                together["lock_timeout"] = f"{wait * 1000:.0f}ms"
            return queries()[name], together
        case SqlScript(text):
            return text.encode(), None

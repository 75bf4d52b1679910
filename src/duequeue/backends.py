"""From a URL's scheme to a backend; the only module that knows every store."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import EntryPoint, entry_points

from duequeue.errors import MissingExtra
from duequeue.port.bulk import BulkBackend
from duequeue.port.store import Backend

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def backend_for(url: str) -> Backend:
    """Return the backend that a URL names, without contacting it."""
    scheme = _scheme_of(url)
    make = _BACKENDS.get(scheme) or _installed().get(scheme)
    if make is None:
        # Text without a scheme may have any form, with a password anywhere in it.
        shown = f" starts with {scheme!r}, which" if _SCHEME.match(url) else ""
        known = _listed([*_BACKENDS, *_installed()])
        raise ValueError(f"url{shown} names no store; the known schemes are: {known}")
    return make(url)


def _installed() -> dict[str, Callable[[str], Backend]]:
    """Return the stores of other packages, by the schemes that they registered."""
    found = entry_points(group="duequeue.stores")
    return {point.name.lower(): partial(_open_installed, point) for point in found}


def _open_installed(point: EntryPoint, url: str) -> Backend:
    backend: Backend = point.load()(url)
    return backend


def bulk_backend_for(url: str) -> BulkBackend:
    """Return the backend for whole batches from many processes, without contacting it."""
    backend_for(url)  # raises if there is anything wrong with the URL
    scheme = _scheme_of(url)
    if scheme not in _BULK_BACKENDS:
        in_memory = scheme == "memory"
        reason = "other processes cannot reach" if in_memory else "does not take whole batches"
        raise ValueError(
            f"url starts with {scheme!r}, which {reason}; use one of: " + _listed(_BULK_BACKENDS)
        )
    try:
        return _BULK_BACKENDS[scheme](url)
    except ImportError as error:
        raise MissingExtra("batches need pyarrow: pip install 'duequeue[spark]'") from error


def absolute(url: str) -> str:
    """Return a URL that means the same in a process with another working folder."""
    if _scheme_of(url) != "sqlite":
        return url
    from duequeue.stores.sql.sqlite.settings import absolute_url

    return absolute_url(url)


def _scheme_of(url: str) -> str:
    if not isinstance(url, str):
        raise TypeError(f"url must be a str, not {type(url).__name__}")
    scheme = url.partition(":")[0].lower()
    family, _, driver = scheme.partition("+")
    return family if driver in _DRIVERS.get(family, ()) else scheme


def _listed(schemes: Iterable[str]) -> str:
    return ", ".join(f"{scheme}:" for scheme in schemes)


def _memory(url: str) -> Backend:
    from duequeue.stores.memory.backend import MemoryBackend

    return MemoryBackend(url)


def _sqlite(url: str) -> Backend:
    from duequeue.stores.sql.sqlite.backend import SqliteBackend

    return SqliteBackend(url)


def _bulk_sqlite(url: str) -> BulkBackend:
    from duequeue.stores.sql.sqlite.bulk import BulkSqliteBackend

    return BulkSqliteBackend(url)


def _postgres(url: str) -> Backend:
    try:
        from duequeue.stores.sql.postgres.backend import PostgresBackend
    except ImportError as error:
        raise MissingExtra("PostgreSQL needs psycopg: pip install 'duequeue[postgres]'") from error
    return PostgresBackend(url)


def _bulk_postgres(url: str) -> BulkBackend:
    from duequeue.stores.sql.postgres.bulk.backend import BulkPostgresBackend

    return BulkPostgresBackend(url)


# SQLAlchemy's URLs name a driver. They name the same database for us, and our driver is psycopg 3.
_POSTGRES_DRIVERS = ("psycopg", "psycopg_async", "psycopg2", "asyncpg")
_DRIVERS = {"postgresql": _POSTGRES_DRIVERS, "postgres": _POSTGRES_DRIVERS}

# Each backend is imported when its scheme is first used, and parses its URL itself.
_BACKENDS: dict[str, Callable[[str], Backend]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgresql": _postgres,
    "postgres": _postgres,
}

_BULK_BACKENDS: dict[str, Callable[[str], BulkBackend]] = {
    "sqlite": _bulk_sqlite,
    "postgresql": _bulk_postgres,
    "postgres": _bulk_postgres,
}

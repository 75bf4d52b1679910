"""From a URL to a backend; the only place that knows every store."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from duequeue.errors import MissingExtra
from duequeue.port.bulk import BulkBackend
from duequeue.port.store import Backend

if TYPE_CHECKING:
    from duequeue.stores.sql.postgres.settings import PostgresSettings


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def backend_for(url: str) -> Backend:
    """Return the backend that a URL names. Nothing is contacted yet."""
    if not isinstance(url, str):
        raise TypeError(f"url must be a str, not {type(url).__name__}")
    scheme = url.partition(":")[0].lower()
    opener = _BACKENDS.get(scheme) or _installed(scheme)
    if opener is None:
        # What has no scheme may be of any form, with a password anywhere in it.
        shown = f" starts with {scheme!r}, which" if _SCHEME.match(url) else ""
        raise ValueError(
            f"url{shown} names no store; known are: "
            + ", ".join(f"{known}:" for known in _BACKENDS)
        )
    return opener(url)


@cache
def _installed(scheme: str) -> Callable[[str], Backend] | None:
    """Return what an installed package opens URLs of this scheme with, if there is one."""
    from importlib.metadata import entry_points

    found = entry_points(group="duequeue.stores", name=scheme)
    return next((point.load() for point in found), None)


def bulk_backend_for(url: str) -> BulkBackend:
    """Return the database that a URL names, for whole batches from many processes."""
    backend_for(url)  # says what is wrong with it
    scheme = url.partition(":")[0].lower()
    if scheme not in _BULK_BACKENDS:
        raise ValueError(
            f"url starts with {scheme!r}, which other processes cannot reach; known are: "
            + ", ".join(f"{known}:" for known in _BULK_BACKENDS)
        )
    try:
        return _BULK_BACKENDS[scheme](url)
    except ImportError as error:
        raise MissingExtra("batches need pyarrow: pip install 'duequeue[spark]'") from error


def absolute(url: str) -> str:
    """Return a URL that means the same in a process with another working folder."""
    location, mark, options = url.partition("?")
    scheme, _, path = location.partition(":///")
    if scheme.lower() != "sqlite":
        return url
    return f"{scheme}:///{quote(str(Path(unquote(path)).absolute()))}{mark}{options}"


def _memory(url: str) -> Backend:
    from duequeue.stores.memory.backend import MemoryBackend

    return MemoryBackend(url.partition(":")[2])


def _sqlite(url: str) -> Backend:
    from duequeue.stores.sql.sqlite.backend import SqliteBackend

    return SqliteBackend(*_file_settings(url))


def _bulk_sqlite(url: str) -> BulkBackend:
    from duequeue.stores.sql.sqlite.bulk import BulkSqliteBackend

    path, synchronous = _file_settings(url)
    if not Path(path).is_absolute():
        raise ValueError(
            "url must name an absolute path, such as sqlite:////var/lib/app.db: "
            "other processes work in other folders"
        )
    return BulkSqliteBackend(path, synchronous)


def _file_settings(url: str) -> tuple[str, str]:
    """Return the path and how to synchronize."""
    location, options = _split_options(url)
    path = location.partition(":")[2]
    if not path.startswith("///"):
        raise ValueError("url of an SQLite file has three slashes: sqlite:///app.db")
    synchronous = options.pop("synchronous", "full")
    if options:
        raise ValueError(f"url has unknown options {sorted(options)}; known is: synchronous")
    return unquote(path.removeprefix("///")), synchronous


def _postgres(url: str) -> Backend:
    try:
        from duequeue.stores.sql.postgres.backend import PostgresBackend
    except ImportError as error:
        raise MissingExtra(
            "PostgreSQL needs psycopg and its pool: pip install 'duequeue[postgres]'"
        ) from error
    return PostgresBackend(_server_settings(url))


def _bulk_postgres(url: str) -> BulkBackend:
    from duequeue.stores.sql.postgres.bulk.backend import BulkPostgresBackend

    return BulkPostgresBackend(_server_settings(url))


def _server_settings(url: str) -> "PostgresSettings":
    from duequeue.stores.sql.postgres.settings import PostgresSettings

    location, options = _split_options(url)
    _check_authority(location, url.partition("?")[2])
    pool_size = options.pop("pool_size", "10")
    if not pool_size.isdecimal():
        raise ValueError(f"pool_size in the url must be a whole number, not {pool_size!r}")
    pooler = options.pop("pooler", "session")
    if pooler not in {"session", "transaction"}:
        raise ValueError(f"pooler in the url must be session or transaction, not {pooler!r}")
    theirs = "&".join(f"{name}={value}" for name, value in options.items())
    by_transaction = pooler == "transaction"
    return PostgresSettings(f"{location}?{theirs}", int(pool_size), by_transaction)


def _check_authority(location: str, options: str) -> None:
    """Raise if part of a password would be taken for a host, a port, a database or an option."""
    authority, _, database = location.partition("://")[2].partition("/")
    no_port = re.search(r":[^@:\]]*[^@:\]0-9]", authority)  # but a password, up to its first ?
    if authority.count("@") > 1 or "@" in database or ("@" in options and no_port):
        raise ValueError(
            "url has an @, / or ? in its user or password: write it as %40, %2F or %3F, as any "
            "other special character there"
        )


def _split_options(url: str) -> tuple[str, dict[str, str]]:
    """Split `…?name=value&…`, leaving the values encoded as they are."""
    location, _, query = url.partition("?")
    pairs = (option.partition("=") for option in query.split("&") if option)
    return location, {name: value for name, _, value in pairs}


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

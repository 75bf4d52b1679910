"""From a URL's scheme to a backend; the only module that knows every store."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from duequeue.errors import InvalidArgument, InvalidType, MissingExtra
from duequeue.port.store import Backend

if TYPE_CHECKING:
    from duequeue.stores.http.connections import ServerRequests

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def backend_for(url: str, token: str | None = None) -> Backend:
    """Return the backend that a URL names, without contacting it; a token is for a server."""
    scheme = scheme_of(url)
    if scheme in _SERVER_SCHEMES:
        return _http(url, token)
    if token is not None:
        raise InvalidArgument(
            "token", "can be used only with the URL of a server, such as https://host"
        )
    make = _BACKENDS.get(scheme) or _installed().get(scheme)
    if make is None:
        # Text without a scheme may have any form, with a password anywhere in it.
        shown = f" starts with {scheme!r}, which" if _SCHEME.match(url) else ""
        known = listed([*_BACKENDS, *_SERVER_SCHEMES, *_installed()])
        raise InvalidArgument(
            "url", text=f"url{shown} names no store; the known schemes are: {known}"
        )
    return make(url)


def _installed() -> dict[str, Callable[[str], Backend]]:
    """Return the stores of other packages, by the schemes that they registered."""
    found = entry_points(group="duequeue.stores")
    return {point.name.lower(): partial(_open_installed, point) for point in found}


def _open_installed(point: EntryPoint, url: str) -> Backend:
    backend: Backend = point.load()(url)
    return backend


def server_requests(url: str, token: str | None) -> "ServerRequests":
    """Return what sends requests of the HTTP API to the server that a URL names."""
    from duequeue.stores.http.connections import ServerRequests

    return ServerRequests(url, token)


def is_server(url: str) -> bool:
    """Return whether a URL names a server instead of a database."""
    return scheme_of(url) in _SERVER_SCHEMES


def absolute(url: str) -> str:
    """Return a URL that means the same in a process with another working folder."""
    if scheme_of(url) != "sqlite":
        return url
    from duequeue.stores.sql.sqlite.settings import absolute_url

    return absolute_url(url)


def scheme_of(url: str) -> str:
    """Return the scheme of a URL in lower case, without the name of a driver."""
    if not isinstance(url, str):
        raise InvalidType("url", f"must be a str, not {type(url).__name__}")
    scheme = url.partition(":")[0].lower()
    family, _, driver = scheme.partition("+")
    return family if driver in _DRIVERS.get(family, ()) else scheme


def listed(schemes: Iterable[str]) -> str:
    """Return schemes as they are shown in an error."""
    return ", ".join(f"{scheme}:" for scheme in schemes)


def _memory(url: str) -> Backend:
    from duequeue.stores.memory.backend import MemoryBackend

    return MemoryBackend(url)


def _sqlite(url: str) -> Backend:
    from duequeue.stores.sql.sqlite.backend import SqliteBackend

    return SqliteBackend(url)


def _postgres(url: str) -> Backend:
    try:
        from duequeue.stores.sql.postgres.backend import PostgresBackend
    except ImportError as error:
        raise MissingExtra("PostgreSQL needs psycopg: pip install 'duequeue[postgres]'") from error
    return PostgresBackend(url)


def _mariadb(url: str) -> Backend:
    try:
        from duequeue.stores.sql.mariadb.backend import MariadbBackend
    except ImportError as error:
        needs = "MariaDB and MySQL need PyMySQL: pip install 'duequeue[mysql]'"
        raise MissingExtra(needs) from error
    return MariadbBackend(url)


def _redis(url: str) -> Backend:
    try:
        from duequeue.stores.redis.backend import RedisBackend
    except ImportError as error:
        raise MissingExtra("Redis needs redis-py: pip install 'duequeue[redis]'") from error
    return RedisBackend(url)


def _http(url: str, token: str | None) -> Backend:
    try:
        from duequeue.stores.http.backend import HttpBackend
    except ImportError as error:
        raise MissingExtra(
            "the URL of a server needs aiohttp: pip install 'duequeue[http]'"
        ) from error
    return HttpBackend(url, token)


# SQLAlchemy's URLs name a driver. They name the same database for us, and our drivers are psycopg 3
# for PostgreSQL, and PyMySQL and asyncmy for MariaDB and MySQL.
_POSTGRES_DRIVERS = ("psycopg", "psycopg_async", "psycopg2", "asyncpg")
_MYSQL_DRIVERS = ("pymysql", "asyncmy", "mysqldb", "aiomysql", "mariadbconnector", "mysqlconnector")
_DRIVERS = {
    "postgresql": _POSTGRES_DRIVERS,
    "postgres": _POSTGRES_DRIVERS,
    "mariadb": _MYSQL_DRIVERS,
    "mysql": _MYSQL_DRIVERS,
}

_REDIS_WAYS = ("", "+sentinel", "+cluster")
# A server by itself, the primary that Sentinel names, or a cluster; with an s, through TLS.
REDIS_SCHEMES = (
    *(name + way for name in ("redis", "rediss", "valkey", "valkeys") for way in _REDIS_WAYS),
    "unix",
)

# Each backend is imported when its scheme is first used, and parses its URL itself.
_BACKENDS: dict[str, Callable[[str], Backend]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgresql": _postgres,
    "postgres": _postgres,
    "mariadb": _mariadb,
    "mysql": _mariadb,
    **dict.fromkeys(REDIS_SCHEMES, _redis),
}

_SERVER_SCHEMES = ("http", "https")

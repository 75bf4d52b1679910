"""From a URL to a backend; the only place that knows every store."""

from collections.abc import Callable
from urllib.parse import unquote

from duequeue.errors import MissingExtra
from duequeue.store import Backend


def backend_for(url: str) -> Backend:
    """Return the backend that a URL names. Nothing is contacted yet."""
    if not isinstance(url, str):
        raise TypeError(f"url must be a str, not {type(url).__name__}")
    scheme = url.partition(":")[0].lower()
    if scheme not in _BACKENDS:
        raise ValueError(
            f"url starts with {scheme!r}, which names no store; known are: "
            + ", ".join(f"{known}:" for known in _BACKENDS)
        )
    return _BACKENDS[scheme](url)


def _memory(url: str) -> Backend:
    from duequeue.stores.memory import MemoryBackend

    return MemoryBackend(url.partition(":")[2])


def _sqlite(url: str) -> Backend:
    from duequeue.stores.sql.sqlite.backend import SqliteBackend

    location, options = _split_options(url)
    path = location.partition(":")[2]
    if not path.startswith("///"):
        raise ValueError("url of an SQLite file has three slashes: sqlite:///app.db")
    synchronous = options.pop("synchronous", "full")
    if options:
        raise ValueError(f"url has unknown options {sorted(options)}; known is: synchronous")
    return SqliteBackend(unquote(path.removeprefix("///")), synchronous)


def _postgres(url: str) -> Backend:
    try:
        from duequeue.stores.sql.postgres.backend import PostgresBackend
        from duequeue.stores.sql.postgres.settings import Settings
    except ImportError as error:
        raise MissingExtra(
            "PostgreSQL needs psycopg and its pool: pip install 'duequeue[postgres]'"
        ) from error
    location, options = _split_options(url)
    pool_size = options.pop("pool_size", "10")
    if not pool_size.isdecimal():
        raise ValueError(f"pool_size in the url must be a whole number, not {pool_size!r}")
    pooler = options.pop("pooler", "session")
    if pooler not in {"session", "transaction"}:
        raise ValueError(f"pooler in the url must be session or transaction, not {pooler!r}")
    theirs = "&".join(f"{name}={value}" for name, value in options.items())
    by_transaction = pooler == "transaction"
    return PostgresBackend(Settings(f"{location}?{theirs}", int(pool_size), by_transaction))


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

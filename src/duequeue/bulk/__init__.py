"""Whole batches of messages, as Spark writes and reads them; only `spark` and `pipeline` use it.

`port.py` says what a database must be able to do, and each other file does it for one of them. They
use the operations, sessions and statements of `stores`, which know nothing of batches.
"""

from collections.abc import Callable

from duequeue.backends import REDIS_SCHEMES, backend_for, listed, scheme_of
from duequeue.bulk.port import BulkBackend
from duequeue.errors import InvalidArgument, MissingExtra


def bulk_backend_for(url: str) -> BulkBackend:
    """Return the backend for whole batches from many processes, without contacting it."""
    backend_for(url)  # raises if there is anything wrong with the URL
    scheme = scheme_of(url)
    if scheme not in _BACKENDS:
        in_memory = scheme == "memory"
        reason = "other processes cannot reach" if in_memory else "does not take whole batches"
        raise InvalidArgument(
            "url", f"starts with {scheme!r}, which {reason}; use one of: " + listed(_BACKENDS)
        )
    try:
        return _BACKENDS[scheme](url)
    except ImportError as error:
        raise MissingExtra("batches need pyarrow: pip install 'duequeue[spark]'") from error


def _sqlite(url: str) -> BulkBackend:
    from duequeue.bulk.sqlite import BulkSqliteBackend

    return BulkSqliteBackend(url)


def _postgres(url: str) -> BulkBackend:
    from duequeue.bulk.postgres import BulkPostgresBackend

    return BulkPostgresBackend(url)


def _mariadb(url: str) -> BulkBackend:
    from duequeue.bulk.mariadb import BulkMariadbBackend

    return BulkMariadbBackend(url)


def _redis(url: str) -> BulkBackend:
    from duequeue.bulk.redis import BulkRedisBackend

    return BulkRedisBackend(url)


# Each backend is imported when its scheme is first used.
_BACKENDS: dict[str, Callable[[str], BulkBackend]] = {
    "sqlite": _sqlite,
    "postgresql": _postgres,
    "postgres": _postgres,
    "mariadb": _mariadb,
    "mysql": _mariadb,
    **dict.fromkeys(REDIS_SCHEMES, _redis),
}

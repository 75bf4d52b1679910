"""Which PostgreSQL errors are worth a retry, and how they are raised."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors as codes
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from duequeue.errors import QueueClosed, StoreError, StoreUnavailable
from duequeue.stores.sql.postgres.address import Address

_TRANSIENT = (
    codes.SerializationFailure,
    codes.DeadlockDetected,
    codes.LockNotAvailable,
    codes.AdminShutdown,
    codes.CrashShutdown,
    codes.CannotConnectNow,
    codes.IdleSessionTimeout,
    codes.IdleInTransactionSessionTimeout,
    codes.TooManyConnections,
    codes.ConfigurationLimitExceeded,
    codes.ReadOnlySqlTransaction,
    PoolTimeout,
    TooManyRequests,
)
# A refused login carries no code, only the server's message.
_REFUSALS = (
    "authentication failed",
    "no password supplied",
    "does not exist",
    "permission denied",
    "is not permitted to log in",
    "no pg_hba.conf entry",
    "Name or service not known",
    "nodename nor servname",
    "server does not support SSL",
)


def translate(error: psycopg.Error, address: Address) -> StoreError | QueueClosed:
    """Return the DueQueue error for a driver's error."""
    if isinstance(error, PoolClosed):
        return QueueClosed("the queue was closed while this call ran")
    kind = StoreUnavailable if is_transient(error) else StoreError
    return kind(f"PostgreSQL at {address}: {address.clean(str(error)).strip()}")


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, address) from error


def is_transient(error: psycopg.Error) -> bool:
    """Return whether the same operation may succeed later."""
    if isinstance(error, _TRANSIENT) or _misses_a_day(error):
        return True
    if error.sqlstate is not None:
        return error.sqlstate.startswith("08")
    # An error without a code means that the server did not answer or refused the connection.
    lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return lost and not any(words in str(error) for words in _REFUSALS)


def must_reconnect(error: psycopg.Error) -> bool:
    """Return whether the connection leads to the wrong server, namely a demoted primary."""
    return isinstance(error, codes.ReadOnlySqlTransaction)


def _misses_a_day(error: psycopg.Error) -> bool:
    """Return whether the history has no partition for a row; the next try creates it.

    PostgreSQL reports this as a violated check, but names a constraint only for a real one.
    """
    diag = error.diag
    return (
        isinstance(error, codes.CheckViolation)
        and diag.table_name == "duequeue_history"
        and diag.constraint_name is None
    )

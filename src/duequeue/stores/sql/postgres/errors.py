"""Which PostgreSQL errors are worth a retry, and how they are raised."""

import errno
import os
from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeGuard

import psycopg
from psycopg import errors as codes

from duequeue.errors import DueQueueError, StoreError, StoreUnavailable
from duequeue.stores.sql.connections.watchdog import WatchedPlace
from duequeue.stores.sql.migrations import missing_tables
from duequeue.stores.sql.postgres.settings import Address

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
    codes.QueryCanceled,  # by statement_timeout or by an administrator
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


def translate(error: psycopg.Error | OSError, address: Address) -> StoreError:
    """Return the DueQueue error for a driver's error."""
    words = address.clean(str(error)).strip()
    if isinstance(error, OSError):
        return StoreUnavailable(f"PostgreSQL at {address}: out of file descriptors: {words}")
    if isinstance(error, codes.UndefinedTable) and "duequeue_" in words:
        return missing_tables(f"PostgreSQL at {address} ({words.splitlines()[0]})")
    if isinstance(error, codes.LockNotAvailable):
        words = f"another transaction has locked what this call needs: {words}"
    kind = StoreUnavailable if is_transient(error) else StoreError
    return kind(f"PostgreSQL at {address}: {words}")


def failure(error: BaseException, place: WatchedPlace, address: Address) -> StoreError | None:
    """Return the DueQueue error for a failed call; None if its own error is the one to raise."""
    if isinstance(error, psycopg.Error) and place.is_cut:
        return StoreUnavailable(f"PostgreSQL at {address}: {place.no_answer}")
    if isinstance(error, psycopg.Error):
        # The driver does not say why no socket could be made.
        return translate((place.connection is None and _lack_of_files()) or error, address)
    return translate(error, address) if _is_lack_of_files(error) else None


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


def leaves_it_usable(error: BaseException) -> bool:
    """Return whether the connection of a failed call can be used again.

    It cannot be used after an interrupt, which may occur in the middle of the driver's code, nor if
    it leads to a demoted primary. After a cancellation, the driver has ended the statement and read
    its answer.
    """
    expected = isinstance(error, psycopg.Error | DueQueueError | CancelledError)
    return expected and not isinstance(error, codes.ReadOnlySqlTransaction)


def interrupt_behind(error: psycopg.Error, handled: BaseException | None) -> BaseException | None:
    """Return the interrupt that struck in a pipeline, if the driver raised its own error instead.

    The caller may have been handling another exception already, which is not an interrupt.
    """
    found: BaseException | None = error
    while isinstance(found, psycopg.Error):
        found = found.__context__
    return None if found is handled else found


def _is_lack_of_files(error: BaseException) -> TypeGuard[OSError]:
    return isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}


def _lack_of_files() -> OSError | None:
    """Try to open one more file, and return the error if that is not possible."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error
    return None


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

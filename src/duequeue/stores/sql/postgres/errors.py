"""Which PostgreSQL errors may pass, and what to say of the rest."""

import os

import psycopg
from psycopg import errors as codes
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from duequeue.errors import QueueClosed, StoreError, StoreUnavailable

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
    codes.CheckViolation,  # ours have none but the partitions: a day of the history is made anew
    PoolTimeout,
    TooManyRequests,
)
# A refused login carries no code, only the server's words.
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


_SECRETS = {"password", "sslpassword", "passfile"}


class Address:
    """Where a server is, without the secrets of how to get in."""

    def __init__(self, conninfo: str) -> None:
        self._parts = conninfo_to_dict(conninfo)

    def __str__(self) -> str:
        parts, given = self._parts, os.environ.get
        host = parts.get("host") or parts.get("hostaddr") or given("PGHOST") or "localhost"
        port = parts.get("port") or given("PGPORT") or 5432
        database = parts.get("dbname") or given("PGDATABASE") or parts.get("user") or ""
        return f"{host}:{port}/{database}"

    @property
    def place(self) -> str:
        """Name what the tables of this connection string are, in this process: schemas too."""
        return make_conninfo("", **{k: v for k, v in self._parts.items() if k not in _SECRETS})

    def clean(self, text: str) -> str:
        """Blot the password out of a driver's words."""
        password = self._parts.get("password")
        return text.replace(str(password), "***") if password else text


def translate(error: psycopg.Error, address: Address) -> StoreError | QueueClosed:
    """Return the DueQueue error that stands for a driver's error."""
    if isinstance(error, PoolClosed):
        return QueueClosed("the queue was closed while this call ran")
    kind = StoreUnavailable if is_transient(error) else StoreError
    return kind(f"PostgreSQL at {address}: {address.clean(str(error)).strip()}")


def is_transient(error: psycopg.Error) -> bool:
    """Tell whether the same operation may succeed later."""
    if isinstance(error, _TRANSIENT):
        return True
    if error.sqlstate is not None:
        return error.sqlstate.startswith("08")
    # Without a code the server said nothing, or closed the door: the connection is lost.
    lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return lost and not any(words in str(error) for words in _REFUSALS)


def must_reconnect(error: psycopg.Error) -> bool:
    """Tell whether a live connection leads to the wrong server: a demoted primary reads only."""
    return isinstance(error, codes.ReadOnlySqlTransaction)

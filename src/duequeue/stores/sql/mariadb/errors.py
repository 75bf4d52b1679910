"""Which errors of MariaDB and MySQL are worth a retry, and how they are raised.

The drivers raise classes of their own, but all of them put the number of the error first.
"""

from asyncio import CancelledError

import asyncmy.errors
import pymysql

from duequeue.errors import DueQueueError, StoreError, StoreUnavailable
from duequeue.stores.sql.connections.watchdog import WatchedPlace
from duequeue.stores.sql.mariadb.settings import HostAddress
from duequeue.stores.sql.migrations import missing_tables

DRIVER_ERRORS: tuple[type[Exception], ...] = (pymysql.err.MySQLError, asyncmy.errors.MySQLError)

ACCESS_DENIED = 1227  # a global right is missing
DEADLOCK = 1213
CHANGED_SINCE_SNAPSHOT = 1020
LOCK_TIMEOUTS = frozenset({1205, 3572})
NO_SUCH_TABLE = 1146
NOT_READY = 1047
PACKET_TOO_LARGE = 1153
STATEMENT_BINLOG = 1665
READ_ONLY = frozenset({1290, 1792, 1836})
CANNOT_CONNECT = 2003

# The connection is gone, and with it the transaction.
LOST = frozenset(
    {0, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 2006, 2013, 2014, 2055, 4031}
)
_TRANSIENT = frozenset(
    {
        DEADLOCK,
        CHANGED_SINCE_SNAPSHOT,
        NOT_READY,
        1180,  # an error during COMMIT
        *LOCK_TIMEOUTS,
        1317,  # interrupted
        1526,  # the history has no partition for a row; the next try adds it
        1969,  # the time of a statement is over
        3024,
        *LOST,
        CANNOT_CONNECT,
        2002,
        1040,  # too many connections
        1203,
        1226,
        1836,
        1792,
    }
)
# A server that speaks no TLS answers asyncmy's request for it in plain text.
_NO_TLS = "WRONG_VERSION_NUMBER"
# A host that does not exist will not exist at the next try, and a certificate stays as it is.
_STAYS = ("[Errno -2]", "[Errno -5]", "[Errno 8]", "CERTIFICATE_VERIFY_FAILED", _NO_TLS)


def number_of(error: BaseException) -> int | None:
    """Return the number of a driver's error."""
    number = error.args[0] if isinstance(error, DRIVER_ERRORS) and error.args else None
    return number if isinstance(number, int) else None


def translate(error: Exception, address: HostAddress) -> StoreError:
    """Return the DueQueue error for a driver's error."""
    number = number_of(error)
    words = " ".join(str(part) for part in error.args[1:]).strip() or str(error)
    where = f"MariaDB at {address}"
    if isinstance(error, OSError):
        return StoreUnavailable(f"{where}: {words or type(error).__name__}")
    if number == NO_SUCH_TABLE and "duequeue_" in words:
        return missing_tables(f"{where} ({words})")
    if number in LOCK_TIMEOUTS:
        words = f"another transaction has locked what this call needs: {words}"
    if number == PACKET_TOO_LARGE:
        words = f"raise max_allowed_packet on the server: {words}"
    if number == STATEMENT_BINLOG:
        words = f"set binlog_format to MIXED or ROW, because DueQueue uses READ COMMITTED: {words}"
    if number == CANNOT_CONNECT and _NO_TLS in words:
        words = f"ssl_mode in the url demands TLS, which the server does not offer: {words}"
    kind = StoreUnavailable if is_transient(number, words) else StoreError
    return kind(f"{where}: {words}" if number is None else f"{where}: {words} ({number})")


def failure(error: BaseException, place: WatchedPlace, address: HostAddress) -> StoreError | None:
    """Return the DueQueue error for a failed call; None if its own error is the one to raise."""
    is_of_driver = isinstance(error, (*DRIVER_ERRORS, OSError))
    if is_of_driver and place.is_cut:
        return StoreUnavailable(f"MariaDB at {address}: {place.no_answer}")
    return translate(error, address) if is_of_driver and isinstance(error, Exception) else None


def is_transient(number: int | None, words: str) -> bool:
    """Return whether the same operation may succeed later."""
    if number == CANNOT_CONNECT:
        return not any(text in words for text in _STAYS)
    if number == 1290:  # noqa: PLR2004 - it also stands for options that forbid something for ever
        return "read-only" in words
    return number in _TRANSIENT


def leaves_it_usable(error: BaseException) -> bool:
    """Return whether the connection of a failed call can be used again.

    It cannot be used after an interrupt, which may occur in the middle of the driver's code, nor if
    it leads to a server that has become read-only, or to a node that its cluster has lost. A new
    connection may find another host. A cancelled call has read its replies.
    """
    number = number_of(error)
    if number is not None:
        return number not in LOST and number not in READ_ONLY and number != NOT_READY
    return isinstance(error, DueQueueError | CancelledError)

"""Which SQLite errors are worth a retry, and how they are raised."""

import sqlite3

from duequeue.errors import StoreError, StoreUnavailable

# Primary result codes: https://www.sqlite.org/rescode.html
_TRANSIENT = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_INTERRUPT,
}
_PRIMARY_CODE = 0xFF


def translate(error: sqlite3.Error, path: str) -> StoreError:
    """Return the DueQueue error for a driver's error."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & _PRIMARY_CODE
    if primary == sqlite3.SQLITE_NOTADB:
        return StoreError(f"{path} is not an SQLite database")
    if primary == sqlite3.SQLITE_CANTOPEN:
        return StoreError(
            f"{path} cannot be opened: does its folder exist, and may we write there?"
        )
    kind = StoreUnavailable if primary in _TRANSIENT else StoreError
    return kind(f"SQLite at {path}: {error}")

"""Which SQLite errors are worth a retry, and how they are raised."""

import errno
import os
import sqlite3

from duequeue.errors import StoreError, StoreUnavailable
from duequeue.stores.sql.migrations import missing_tables

# Primary result codes: https://www.sqlite.org/rescode.html
_TRANSIENT = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_INTERRUPT,
}
_PRIMARY_CODE = 0xFF
_NO_FILES_LEFT = {errno.EMFILE, errno.ENFILE}


def translate(error: sqlite3.Error, path: str) -> StoreError:
    """Return the DueQueue error for a driver's error."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & _PRIMARY_CODE
    if primary == sqlite3.SQLITE_NOTADB:
        return StoreError(f"{path} is not an SQLite database")
    if primary == sqlite3.SQLITE_CANTOPEN:
        if _no_files_left():
            return StoreUnavailable(
                f"{path} cannot be opened, because this process may not open more files: close "
                "some, or raise the limit with `ulimit -n`"
            )
        return StoreError(
            f"{path} cannot be opened: does its folder exist, and may we write there?"
        )
    if str(error).startswith("no such table: duequeue_"):
        return missing_tables(f"SQLite at {path} ({error})")
    kind = StoreUnavailable if primary in _TRANSIENT else StoreError
    return kind(f"SQLite at {path}: {error}")


def _no_files_left() -> bool:
    """Return whether this process may open no more files, which SQLite does not report."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as found:
        return found.errno in _NO_FILES_LEFT
    return False

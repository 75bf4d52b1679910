"""`sqlite:///path/to/file.db`, through the standard library's `sqlite3`."""

import sqlite3
from pathlib import Path
from typing import Any

from duequeue.errors import SchemaError
from duequeue.port.alerts import Alerts, OnAlert
from duequeue.port.examining import Finding
from duequeue.port.store import AsyncSession, Session, Steps
from duequeue.stores.sql.backend import SqlBackend
from duequeue.stores.sql.sqlite import examining
from duequeue.stores.sql.sqlite.alerts import FileAlerts
from duequeue.stores.sql.sqlite.borrowed import BorrowedSqliteSession
from duequeue.stores.sql.sqlite.borrowed_async import BorrowedAsyncSqliteSession
from duequeue.stores.sql.sqlite.session import SqliteSession
from duequeue.stores.sql.sqlite.settings import SqliteSettings
from duequeue.stores.threaded import InlineSession, ThreadedSession


class SqliteBackend(SqlBackend):
    """One file; see `port.store.Backend`."""

    dialect = "sqlite"

    def __init__(self, url: str) -> None:
        settings = SqliteSettings.from_url(url)
        self._path = str(Path(settings.path).resolve())  # the process may change its folder
        self._synchronous = settings.synchronous
        self._mode = settings.mode

    @property
    def address(self) -> str:
        """The absolute path of the file."""
        return self._path

    def session(self) -> Session:
        """Use one connection to write and one to read."""
        return SqliteSession(self._path, self._synchronous, self._mode)

    def async_session(self) -> AsyncSession:
        """Use the same connections, on a thread, because `sqlite3` only blocks."""
        return ThreadedSession(self.session())

    def reading_session(self, at_once: int, seconds: float) -> AsyncSession:  # noqa: ARG002 - a call itself has a limit
        """Use connections and a thread of its own, on which one read runs at a time."""
        return ThreadedSession(SqliteSession(self._path, self._synchronous, self._mode))

    def borrow_session(self, connection: object, session: Any) -> Any:
        """Use a caller's connection, if it has the same file open.

        One of `sqlite3` is used on the event loop's thread, because the caller, too, may only use
        it there.
        """
        if isinstance(session, SqliteSession | BorrowedSqliteSession):
            return BorrowedSqliteSession(connection, self._path)
        if isinstance(connection, sqlite3.Connection):
            return InlineSession(BorrowedSqliteSession(connection, self._path))
        return BorrowedAsyncSqliteSession(connection, self._path)

    def alerts(self, session: Any, kind: str, on_alert: OnAlert) -> Alerts:  # noqa: ARG002 - a commit does not show its kind
        """Watch the file through the queue's session, whose own commits do not show there."""
        blocking: Any = session.blocking if isinstance(session, ThreadedSession) else session
        return FileAlerts(blocking, on_alert)

    def read_only_session(self) -> Session:
        """Open the file to read, and do not create it."""
        return SqliteSession(self._path, self._synchronous, read_only=True)

    def kinds(self) -> Steps[list[str]]:
        """Look the kinds up, unless there is no file or there are no tables."""
        if not Path(self._path).exists():
            raise SchemaError(f"there is no file {self._path}: open a queue in it to create it")
        return (yield from super().kinds())

    def examine(self, now: int) -> Steps[list[Finding]]:
        """Examine the file and the tables."""
        return examining.examine(self._path, now)

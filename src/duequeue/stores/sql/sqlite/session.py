"""Sessions on an SQLite file."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from duequeue.drive.steps import drive
from duequeue.errors import StoreError
from duequeue.port.store import Operation
from duequeue.stores.sql.catalogue import catalogue, queries_that
from duequeue.stores.sql.commands import (
    Begin,
    Command,
    Execute,
    Parameters,
    QueriesInTurn,
    Query,
    QueryEach,
    Row,
    SqlScript,
)
from duequeue.stores.sql.sqlite.errors import translate
from duequeue.stores.sql.sqlite.file_connection import DatabaseFile, FileConnection
from duequeue.stores.sql.sqlite.settings import DEFAULT_MODE

T = TypeVar("T")

QUERIES = catalogue("sqlite")
# SQLite itself waits this long for another writer. Then the retry policy takes over, so that an
# interruption never has to wait for long.
BUSY_SECONDS = 1.0
CHECKPOINT_PAGES = 4000
# A read looks at the clock after this many steps of SQLite, which take about a millisecond.
STEPS_PER_LOOK = 100_000
NOT_AWAITED = queries_that("not awaited", "sqlite")
READS = queries_that("reads", "sqlite")


class Durability:
    """Sets `synchronous` for the next statement of one connection."""

    def __init__(self, connection: sqlite3.Connection, synchronous: str) -> None:
        self.connection = connection
        self._usual = synchronous
        self._level: str | None = synchronous

    def prepare(self, statement: str) -> None:
        """Set whether a named statement waits for the disk; not inside a transaction."""
        level = "normal" if statement in NOT_AWAITED else self._usual
        if level != self._level and not self.connection.in_transaction:
            self._level = None  # unknown, in case the next statement is interrupted
            self.connection.execute(f"PRAGMA synchronous = {level}")
            self._level = level


class SqliteSession:
    """Runs operations on two connections, one to write and one to read; threads may share it.

    SQLite has only one writer anyway, and our turns are fairer and cheaper than its busy waiting.
    Statements that only read do not wait for a writer, of this process or another.
    """

    def __init__(
        self, path: str, synchronous: str, mode: int = DEFAULT_MODE, *, read_only: bool = False
    ) -> None:
        self.path = path
        self._synchronous = synchronous
        connect = partial(_connect, path, synchronous, mode)
        if read_only:
            connect = partial(_connect_read_only, path)
        file = DatabaseFile(path)
        self._writer = FileConnection(file, connect)
        self._reader = FileConnection(file, connect)
        self._durability: Durability | None = None

    def run(
        self,
        operation: Operation[T],
        seconds: float = inf,
        *,
        consumes: bool = False,  # noqa: ARG002 - all operations share one writer
    ) -> T:
        """Run one operation, and commit or roll back the transaction that it began."""
        with self._translated(), ExitStack() as in_use:
            perform: Callable[[Any], object] | None = None

            def perform_here(command: Any) -> object:
                nonlocal perform
                if perform is None:
                    if isinstance(command, Query) and command.name in READS:
                        return self._read(command, seconds)
                    perform = in_use.enter_context(self._writing(seconds))
                return perform(command)

            return drive(operation(), perform_here)

    @contextmanager
    def _writing(self, seconds: float) -> Iterator[Callable[[Any], object]]:
        with self._writer.in_use(seconds) as connection:
            if self._durability is None or self._durability.connection is not connection:
                self._durability = Durability(connection, self._synchronous)
            try:
                yield self._performer(connection)
                if connection.in_transaction:
                    connection.commit()
            except BaseException:
                if connection.in_transaction:
                    connection.rollback()
                raise

    def _read(self, query: Query, seconds: float) -> list[Row]:
        ends_at = monotonic() + seconds
        with self._reader.in_use(seconds) as connection, _ended_at(connection, ends_at):
            return connection.execute(QUERIES[query.name], query.parameters).fetchall()

    def foreign_version(self) -> object:
        """Return a value that changes when another connection commits, but not when this one does.

        SQLite counts the commits for each connection separately.
        """
        with self._translated(), self._writer.in_use() as connection:
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            return connection, version

    def close(self) -> None:
        """Close the connections."""
        self._writer.close()
        self._reader.close()

    def _performer(self, connection: sqlite3.Connection) -> Callable[[Any], object]:
        return Performer(connection, self._durability)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise translate(error, self.path) from error


class Performer:
    """Carries out commands on a connection; without a durability, the connection is borrowed."""

    def __init__(
        self, connection: sqlite3.Connection, durability: Durability | None = None
    ) -> None:
        self._connection = connection
        self._durability = durability

    def __call__(self, command: Command) -> object:
        """Carry out one command."""
        if self._durability is not None:
            self._durability.prepare(getattr(command, "name", ""))
        match command:
            case Query(name, parameters):
                return self._execute(QUERIES[name], parameters).fetchall()
            case QueryEach():
                return self._query_each(command)
            case QueriesInTurn(queries):
                self._begin()
                return [self._query_each(each) for each in queries]
            case Execute(name, parameters):
                return self._execute(QUERIES[name], parameters).rowcount
            case Begin():
                self._begin()
            case SqlScript(text):
                for statement in statements(text):
                    self._connection.execute(statement)
        return None

    def _query_each(self, command: QueryEach) -> list[Row]:
        if len(command.each) > 1:
            self._begin()
        query, rows, cursor = QUERIES[command.name], list[Row](), self._cursor()
        parameters = dict(command.parameters)
        for values in command.each:
            parameters.update(zip(command.columns, values, strict=True))
            rows += cursor.execute(query, parameters)
        return rows

    def _execute(self, query: str, parameters: Parameters) -> sqlite3.Cursor:
        return self._cursor().execute(query, parameters)

    def _cursor(self) -> sqlite3.Cursor:
        cursor = self._connection.cursor()
        cursor.row_factory = None  # for plain tuples, whatever the owner of the connection prefers
        return cursor

    def _begin(self) -> None:
        if self._durability is not None and not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")


@contextmanager
def _ended_at(connection: sqlite3.Connection, ends_at: float) -> Iterator[None]:
    """Interrupt what the block runs when its time is over."""
    if ends_at == inf:
        yield
        return
    connection.set_progress_handler(lambda: monotonic() > ends_at, STEPS_PER_LOOK)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def statements(script: str) -> Iterator[str]:
    """Split a script, because `executescript` would commit the transaction that it runs in."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _connect(path: str, synchronous: str, mode: int) -> sqlite3.Connection:
    _create(path, mode)
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _apply_pragma(connection, "journal_mode", "wal")
        _apply_pragma(connection, "synchronous", {"full": 2, "normal": 1}[synchronous])
        _apply_pragma(connection, "wal_autocheckpoint", CHECKPOINT_PAGES)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_read_only(path: str) -> sqlite3.Connection:
    """Connect to a file that may belong to somebody else, so not even a pragma is set."""
    uri = f"{Path(path).as_uri()}?mode=ro"
    return sqlite3.connect(
        uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )


def _create(path: str, mode: int) -> None:
    """Create the file unless it exists, because SQLite would let every user of the machine read it.

    SQLite gives the log beside the file the same mode.
    """
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
    except OSError:
        return  # it exists, or else SQLite reports what is wrong
    try:
        Path(path).chmod(mode)  # the process's umask must not narrow what the URL asks for
    finally:
        os.close(file)


def _apply_pragma(connection: sqlite3.Connection, name: str, value: str | int) -> None:
    """Set a pragma and read it back, because SQLite silently ignores what it cannot do."""
    connection.execute(f"PRAGMA {name} = {value}")
    (actual,) = connection.execute(f"PRAGMA {name}").fetchone()
    if actual != value:
        raise StoreError(f"SQLite refused PRAGMA {name} = {value}; it stays at {actual!r}")

"""Snapshots: each part is read on one connection, which sees the table as it was at one moment."""

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from time import sleep
from typing import Any

from duequeue.bulk.port import (
    ID,
    KEY,
    PAGE_BYTES,
    PAYLOAD,
    MessageColumns,
    SnapshotPart,
    SnapshotQuery,
)
from duequeue.bulk.sql import CHUNK_ROWS, SMALL_CHUNK_ROWS, cut, measured, paged
from duequeue.instants import EARLIEST
from duequeue.port.store import Steps
from duequeue.retry_policy import RetryPolicy
from duequeue.stores.sql.commands import Row
from duequeue.stores.sql.connections.watchdog import WatchedPlace
from duequeue.stores.sql.mariadb.connections import MariadbConnection, connect
from duequeue.stores.sql.mariadb.errors import DRIVER_ERRORS, is_transient, number_of, translate
from duequeue.stores.sql.mariadb.server import MariadbServer
from duequeue.stores.sql.mariadb.settings import MariadbSettings
from duequeue.stores.sql.mariadb.statements import (
    MOST_AT_ONCE,
    literals,
    prepared,
    rendered,
    rendered_each,
)

LAST_ID = 2**63 - 1
DUE = ID + 1
# Spark may take its time between two pages, in seconds.
PATIENCE = 24 * 3600
BEGIN = (
    f"SET SESSION wait_timeout = {PATIENCE}",
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)
MARIADB_PATIENCE = "SET SESSION idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0"

_NO_SNAPSHOT = (
    "MariaDB and MySQL cannot share a snapshot between connections, so each of the %d partitions "
    "of this read shows its own moment, and a message that changes meanwhile may be in two of them "
    "or in none; set numPartitions to 1 to read one moment"
)

logger = logging.getLogger("duequeue.spark")

Ask = Callable[[str, Mapping[str, Any], Sequence[str] | None], list[Row]]


class MariadbSnapshots:
    """Reads one kind of message in parts; see `bulk.port.Snapshots`.

    The servers cannot share a snapshot, so each part shows a moment of its own. By default, there
    is one part.
    """

    def __init__(self, settings: MariadbSettings, kind_id: int) -> None:
        self._settings = settings
        self._kind_id = kind_id

    def measure(self) -> Steps[range]:
        """Look for the first and the last id."""
        return measured()

    def plan(self, table: range, parts: int | None, seconds: float) -> list[SnapshotPart]:  # noqa: ARG002 - nothing is kept
        """Cut the table by id."""
        planned = cut(table, LAST_ID, parts or 1)
        if len(planned) > 1:
            logger.warning(_NO_SNAPSHOT, len(planned))
        return planned

    def read(
        self, part: SnapshotPart, page: int, query: SnapshotQuery
    ) -> Generator[MessageColumns, None, None]:
        """Read a range of ids in one transaction, or look the messages up in an index."""
        with self._connected() as connection:
            connection.send(BEGIN)
            if not connection.facts.is_mysql:
                connection.send([MARIADB_PATIENCE])
            rows = chain.from_iterable(self._found(_asking(connection), part, query))
            size = min(page, CHUNK_ROWS if query.with_payload else SMALL_CHUNK_ROWS)
            chunks = iter(lambda: list(islice(rows, size)), [])
            for columns in paged(chunks, page, with_payload=query.with_payload):
                yield columns[:ID]
            connection.send(["COMMIT"])

    def _found(self, ask: Ask, part: SnapshotPart, query: SnapshotQuery) -> Iterator[list[Row]]:
        """Yield rows as the server sends them, from the index that finds the fewest."""
        conditions = query.conditions._asdict()
        keys: list[str] | None = conditions.pop("keys")
        of = {**conditions, "kind_id": self._kind_id, "with_payload": query.with_payload}
        if keys is not None:
            at_once = CHUNK_ROWS if query.with_payload else MOST_AT_ONCE
            for first in range(0, len(keys), at_once):
                yield ask("select_messages", of, keys[first : first + at_once])
        elif query.conditions.key_from is not None:
            yield from _following(ask, "read_messages_by_key", of, {"after_key": ""})
        elif query.conditions.are_narrow:
            start = query.conditions.deliver_from
            before = EARLIEST - 1 if start is None else start - 1
            place = {"after_due": before, "after_id": LAST_ID}
            yield from _following(ask, "read_messages_by_due", of, place)
        else:
            of |= {"last": part.last}
            yield from _following(ask, "read_messages", of, {"after_id": part.first - 1})

    @contextmanager
    def _connected(self) -> Iterator[MariadbConnection]:
        try:
            connection = self._connect_patiently()
            try:
                yield connection
            finally:
                connection.finish()
        except DRIVER_ERRORS as error:
            raise translate(error, self._settings.address) from error

    def _connect_patiently(self) -> MariadbConnection:
        """Connect, and wait for a server that restarts or has no free connection at this moment."""
        for pause in RetryPolicy().pauses():
            try:
                return self._connect()
            except DRIVER_ERRORS as error:
                if not is_transient(number_of(error), str(error)):
                    raise
            sleep(pause)
        return self._connect()

    def _connect(self) -> MariadbConnection:
        return connect(WatchedPlace(MariadbServer(self._settings)), self._settings)


def _following(
    ask: Ask, name: str, of: Mapping[str, Any], place: Mapping[str, Any]
) -> Iterator[list[Row]]:
    """Read one page after the other, and more rows at once while they are small."""
    limit = CHUNK_ROWS
    while rows := ask(name, {**of, **place, "limit": limit}, None):
        last, is_full = rows[-1], len(rows) == limit
        size = sum(len(row[PAYLOAD] or b"") for row in rows)
        limit = min(SMALL_CHUNK_ROWS, max(CHUNK_ROWS, limit * PAGE_BYTES // 16 // max(size, 1)))
        yield rows
        if not is_full:
            return
        place = {"after_key": last[KEY], "after_id": last[ID], "after_due": last[DUE]}


def _asking(connection: MariadbConnection) -> Ask:
    def ask(name: str, parameters: Mapping[str, Any], keys: Sequence[str] | None) -> list[Row]:
        query = prepared(name, is_mysql=connection.facts.is_mysql)
        of = literals(parameters, query)
        if keys is None:
            texts = rendered(query.first, of)
        else:
            texts = rendered_each(query.first, of, ("key",), [(key,) for key in keys])
        return connection.send(texts)[0].rows or []

    return ask

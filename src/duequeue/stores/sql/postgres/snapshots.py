"""One picture of the table for many readers: an exported snapshot, kept while they read."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import closing, suppress
from typing import Any

import psycopg
from psycopg import sql

from duequeue.bulk import MessageRow, SnapshotPart, default_parts
from duequeue.errors import StoreError
from duequeue.stores.sql.parts import cut
from duequeue.stores.sql.postgres import snapshot_holder
from duequeue.stores.sql.postgres.chunks import chunks
from duequeue.stores.sql.postgres.session import translated
from duequeue.stores.sql.postgres.settings import Settings
from duequeue.stores.sql.postgres.snapshot_holder import BEGIN
from duequeue.stores.sql.postgres.statements import queries

LAST_PAGE = 2**32 - 1
_TELL = "SELECT pg_notify('duequeue_snapshot', %s)"


class PostgresSnapshots:
    """Reads one kind of message in parts; see `bulk.Snapshots`."""

    def __init__(self, settings: Settings, kind_id: int) -> None:
        self._settings = settings
        self._kind_id = kind_id

    def plan(self, parts: int | None, seconds: float) -> list[SnapshotPart]:
        """Export a snapshot and cut the table by its pages.

        Not behind a pooler: nobody would hear there that all is read, and a snapshot that is kept
        keeps the dead rows of the whole database. One part shows one moment without it.
        """
        with translated(self._settings.address), closing(self._connect()) as connection:
            ((first, last),) = connection.execute(queries()["measure_messages"]).fetchall()
        if self._settings.pooled_by_transaction:
            return cut(first, last, LAST_PAGE, parts or 1, None)
        planned = cut(first, last, LAST_PAGE, parts or default_parts(), None)
        snapshot = hold(self._settings, len(planned), seconds)
        return [part._replace(snapshot=snapshot) for part in planned]

    def read(
        self, part: SnapshotPart, page: int, *, with_payload: bool
    ) -> Generator[list[MessageRow], None, None]:
        """Read a range of pages in the snapshot."""
        of = {
            "kind_id": self._kind_id,
            "with_payload": with_payload,
            "first": part.first,
            "last": part.last,
        }
        with translated(self._settings.address), closing(self._connect()) as connection:
            connection.execute(BEGIN)
            if part.snapshot is not None:
                _enter(connection, part.snapshot)
            # As the server sends them: its cursors would put each page aside first.
            yield from chunks(connection, queries()["read_messages"], of, page)
            connection.execute("COMMIT")
            if part.snapshot is not None:
                connection.execute(_TELL, [f"{part.snapshot} {part.number}"])

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self._settings.conninfo, **self._settings.connection_arguments)


def hold(settings: Settings, parts: int, seconds: float) -> str:
    """Take a snapshot, and have it kept until so many parts are read, or for so many seconds."""
    order = {
        "conninfo": settings.conninfo,
        "arguments": settings.connection_arguments,
        "parts": parts,
        "seconds": seconds,
        "owner": os.getppid(),  # of Spark's workers, which come and go
    }
    process: Any = subprocess.Popen(  # noqa: S603 - the only command is our own
        [sys.executable, "-P", snapshot_holder.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # else it would end with the worker
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    threading.Thread(target=process.wait, name="duequeue-snapshot", daemon=True).start()
    with suppress(BrokenPipeError), process.stdin as orders:
        orders.write(json.dumps(order).encode())
    with process.stdout as answers:
        answer = json.loads(answers.readline() or "{}")
    if "snapshot" not in answer:
        reason = settings.address.clean(answer.get("error", "its process ended"))
        raise StoreError(f"no snapshot could be kept: {reason}")
    return str(answer["snapshot"])


def _enter(connection: psycopg.Connection, snapshot: str) -> None:
    """See what the others see; or the present, when the snapshot has been let go.

    Spark plans a DataFrame once, however often it is used, and nothing tells a later use from the
    first.
    """
    try:
        connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot))
    except (psycopg.errors.InvalidParameterValue, psycopg.errors.UndefinedObject):
        connection.execute("ROLLBACK")
        connection.execute(BEGIN)

"""Wake-ups between processes by NOTIFY and LISTEN, with one connection for each per process."""

import logging
from contextlib import closing

import psycopg

from duequeue.process.line import ANSWER_WITHIN, Line
from duequeue.stores.mailbox import Mailbox, Note, Notes, Wire
from duequeue.stores.sql.commands import Parameters
from duequeue.stores.sql.connections.watchdog import WatchedPlace
from duequeue.stores.sql.postgres.connections import PostgresServer
from duequeue.stores.sql.postgres.settings import PostgresSettings
from duequeue.stores.sql.postgres.statements import queries

# How soon, in seconds, a line notices that it should close.
HEAR_FOR = 0.1


class PostgresWire(Wire[psycopg.Connection]):
    """Sends notes with offers, but not with each, as a NOTIFY locks the whole server at commit."""

    logger = logging.getLogger("duequeue.postgres")
    sends_with_commits = True
    losses = (psycopg.Error,)

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self.place = settings.address.place
        self.address = str(settings.address)
        # A pooler would deliver the notes to another of its clients.
        self.hears = not settings.pooled_by_transaction

    def connect(self) -> closing[psycopg.Connection]:
        """Open a connection outside the pool."""
        settings = self._settings
        return closing(psycopg.connect(settings.conninfo, **settings.connection_arguments))

    def clean(self, text: str) -> str:
        """Remove the password."""
        return self._settings.address.clean(text)

    def prepare(self, connection: psycopg.Connection) -> None:
        """Let commits not wait for the disk, because a hint need not survive a crash."""
        if not self._settings.pooled_by_transaction:
            self._execute(connection, b"SET synchronous_commit = off")

    def send(
        self,
        box: Mailbox[psycopg.Connection],
        connection: psycopg.Connection,
        notes: Notes,
    ) -> None:
        """Send a NOTIFY for each note."""
        if notes:
            # This query takes notes of either sort.
            self._execute(connection, queries()["notify_answered"], {"note": box.texts(notes)})

    def hear(
        self,
        box: Mailbox[psycopg.Connection],
        line: Line[psycopg.Connection],
        connection: psycopg.Connection,
    ) -> None:
        """Keep LISTEN running."""
        self._execute(connection, b"LISTEN duequeue")
        line.works()
        box.alert_all()
        while not line.closed.is_set():
            for notification in connection.notifies(timeout=HEAR_FOR):
                try:
                    note = Note.parse(notification.payload)
                except ValueError:  # any client may notify this channel
                    words = "ignored a NOTIFY duequeue that DueQueue did not send: %r"
                    self.logger.warning(words, notification.payload)
                else:
                    box.hear(note)

    def _execute(
        self, connection: psycopg.Connection, query: bytes, parameters: Parameters | None = None
    ) -> None:
        """Execute a statement, and give the connection up if there is no answer in time."""
        with WatchedPlace(PostgresServer(self._settings)).limit(connection, ANSWER_WITHIN):
            connection.execute(query, parameters)

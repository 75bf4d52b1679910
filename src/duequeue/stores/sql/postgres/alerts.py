"""Wake-ups between processes by NOTIFY and LISTEN, with one connection for each per process."""

import logging
import os
import secrets
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from queue import SimpleQueue
from time import monotonic

import psycopg

from duequeue.port.alerts import Alert, Answered, OnAlert
from duequeue.process import line as lines
from duequeue.process.shared import Shared
from duequeue.stores.sql.commands import Parameters
from duequeue.stores.sql.pooling.watchdog import WatchedPlace
from duequeue.stores.sql.postgres.server import PostgresServer
from duequeue.stores.sql.postgres.settings import PostgresSettings
from duequeue.stores.sql.postgres.statements import queries
from duequeue.stores.wakeup_note import AnsweredNote, Note

logger = logging.getLogger("duequeue.postgres")

# A NOTIFY takes a lock on the whole server at commit. So a busy producer sends a few hundred per
# second instead of one with every offer.
SEND_EVERY = 0.005
# How soon, in seconds, a line notices that it should close.
HEAR_FOR = 0.1

_PROCESS = secrets.token_hex(4)


class Line(lines.Line[psycopg.Connection]):
    """A line to PostgreSQL."""

    def __init__(
        self, settings: PostgresSettings, work: Callable[["Line", psycopg.Connection], None]
    ) -> None:
        self.settings = settings
        self._place = WatchedPlace(PostgresServer(settings))
        address = settings.address
        super().__init__(address.place, str(address), logger, self._open, work)

    def execute(
        self, connection: psycopg.Connection, query: bytes, parameters: Parameters | None = None
    ) -> None:
        """Execute a statement, and give the connection up if there is no answer in time."""
        with self._place.limit(connection, lines.ANSWER_WITHIN):
            connection.execute(query, parameters)

    def clean(self, text: str) -> str:
        """Remove the password."""
        return self.settings.address.clean(text)

    def _open(self) -> closing[psycopg.Connection]:
        settings = self.settings
        return closing(psycopg.connect(settings.conninfo, **settings.connection_arguments))


class SharedLines:
    """The lines of one process to one database, which its queues share."""

    def __init__(self) -> None:
        # By this name a process knows its own notes; a fork has a name and lines of its own.
        self._name = f"{_PROCESS}-{os.getpid()}"
        self._lock = threading.Lock()
        self._listeners: defaultdict[str, list[OnAlert]] = defaultdict(list)
        self._unsent: dict[str, int] = {}
        self._unsent_keys: set[tuple[str, str]] = set()
        self._sent_at: dict[str, float] = {}
        # This queue is written in C, so that an interrupt of an offer cannot occur inside it.
        self._something_to_send: SimpleQueue[None] = SimpleQueue()
        self._sending: Line | None = None
        self._hearing: Line | None = None

    def add(self, kind: str, on_alert: OnAlert) -> None:
        """Connect a queue."""
        with self._lock:
            self._listeners[kind].append(on_alert)

    def remove(self, kind: str, on_alert: OnAlert) -> None:
        """Disconnect a queue; after the last one, send what is left and close the lines."""
        with self._lock:
            self._listeners[kind].remove(on_alert)
            if not self._listeners[kind]:
                del self._listeners[kind]
                self._sent_at.pop(kind, None)
            if self._listeners:
                return
            lines = [line for line in (self._sending, self._hearing) if line is not None]
            self._sending = self._hearing = None
        for line in lines:
            line.closed.set()
        self._something_to_send.put(None)
        for line in lines:
            line.close()

    def sender(self, kind: str) -> str | None:
        """Return the name under which an offer notifies the others; None if one just did."""
        now = monotonic()
        with self._lock:
            if kind in self._unsent or now < self._sent_at.get(kind, 0.0) + SEND_EVERY:
                return None
            self._sent_at[kind] = now
        return self._name

    def notify(self, settings: PostgresSettings, kind: str, due_at: int) -> None:
        """Have a due time sent; if several wait to be sent, only the earliest is."""
        with self._lock:
            if kind not in self._listeners:
                return  # the queue was closed while this offer ran
            self._note(kind, due_at)
            self._sending = self._sending or Line(settings, self._send)

    def notify_answered(self, settings: PostgresSettings, kind: str, keys: Iterable[str]) -> None:
        """Have the keys of responses sent."""
        with self._lock:
            if kind not in self._listeners:
                return
            self._note_keys((kind, key) for key in keys)
            self._sending = self._sending or Line(settings, self._send)

    def listen(self, settings: PostgresSettings) -> None:
        """Open the line that receives the notes of the others."""
        if settings.pooled_by_transaction:
            return  # the pooler would deliver the notes to another of its clients
        with self._lock:
            if self._listeners:  # otherwise the queue was closed while this poll ran
                self._hearing = self._hearing or Line(settings, self._hear)

    def _send(self, line: Line, connection: psycopg.Connection) -> None:
        if not line.settings.pooled_by_transaction:
            # A hint need not survive a crash.
            line.execute(connection, b"SET synchronous_commit = off")
        line.works()
        while not line.closed.is_set() or self._unsent or self._unsent_keys:
            self._something_to_send.get()
            with self._lock:
                to_send, self._unsent = self._unsent, {}
                keys, self._unsent_keys = self._unsent_keys, set()
                self._sent_at |= dict.fromkeys(to_send, monotonic())
            try:
                for kind, due_at in to_send.items():
                    note = str(Note(self._name, due_at, kind))
                    line.execute(connection, queries()["notify_waiters"], {"note": note})
                if keys:
                    notes = [str(AnsweredNote(self._name, *each)) for each in keys]
                    line.execute(connection, queries()["notify_answered"], {"note": notes})
            except psycopg.Error:
                with self._lock:
                    for kind, due_at in to_send.items():  # they are sent on the next connection
                        self._note(kind, due_at)
                    self._note_keys(keys)
                raise
            line.closed.wait(SEND_EVERY)

    def _note(self, kind: str, due_at: int) -> None:
        if not (self._unsent or self._unsent_keys):
            self._something_to_send.put(None)
        self._unsent[kind] = min(due_at, self._unsent.get(kind, due_at))

    def _note_keys(self, keys: Iterable[tuple[str, str]]) -> None:
        if not (self._unsent or self._unsent_keys):
            self._something_to_send.put(None)
        self._unsent_keys.update(keys)

    def _hear(self, line: Line, connection: psycopg.Connection) -> None:
        line.execute(connection, b"LISTEN duequeue")
        line.works()
        for kind in list(self._listeners):
            self._alert(kind, None)  # for the notes that were sent before this line was open
        while not line.closed.is_set():
            for notification in connection.notifies(timeout=HEAR_FOR):
                self._hear_one(notification.payload)

    def _hear_one(self, payload: str) -> None:
        try:
            note = Note.parse(payload)
        except ValueError:  # any client may notify this channel
            logger.warning("ignored a NOTIFY duequeue that DueQueue did not send: %r", payload)
            return
        answered = AnsweredNote.of(note)
        if answered is None and note.sender != self._name:
            self._alert(note.kind, note.due_at)
        elif answered is not None and answered.sender != self._name:
            self._alert(answered.kind, Answered(answered.key))

    def _alert(self, kind: str, alert: Alert) -> None:
        with self._lock:
            listeners = list(self._listeners.get(kind, ()))
        for on_alert in listeners:
            on_alert(alert)


shared_lines = Shared(SharedLines)


class PostgresAlerts:
    """One queue on the shared lines; see `port.alerts.Alerts`."""

    waiting = None  # a wake-up goes to everybody

    def __init__(self, settings: PostgresSettings, kind: str, on_alert: OnAlert) -> None:
        self._settings = settings
        self._kind = kind
        self._on_alert = on_alert
        self._lines = shared_lines.get(settings.address.place)
        self._lines.add(kind, on_alert)

    def sender(self) -> str | None:
        """Return a name now and then for a busy producer, which uses `notify` otherwise."""
        return self._lines.sender(self._kind)

    def notify(self, due_at: int) -> None:
        """Send a NOTIFY soon."""
        self._lines.notify(self._settings, self._kind, due_at)

    def notify_answered(self, keys: Sequence[str]) -> None:
        """Send a NOTIFY for each key soon."""
        self._lines.notify_answered(self._settings, self._kind, keys)

    def listen(self, seconds: float) -> None:  # noqa: ARG002 - the line stays until the queue is closed
        """Keep LISTEN running."""
        self._lines.listen(self._settings)

    def listen_for_answers(self, seconds: float) -> None:
        """Listen as for messages."""
        self.listen(seconds)

    def close(self) -> None:
        """Leave the shared lines."""
        self._lines.remove(self._kind, self._on_alert)

"""NOTIFY tells the other processes, LISTEN hears them: one connection each per process."""

import logging
import os
import secrets
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import TypeAlias

import psycopg

from duequeue.alerts import OnAlert
from duequeue.shared import Shared
from duequeue.stores.sql.postgres.settings import Settings
from duequeue.stores.sql.postgres.statements import queries

logger = logging.getLogger("duequeue.postgres")

# NOTIFY takes a lock on the whole server at commit, so a busy producer sends a few hundred a
# second instead of one with every offer.
SEND_EVERY = 0.005
RETRY_EVERY = 1.0
CLOSE_WITHIN = 0.5

Line: TypeAlias = Callable[[psycopg.Connection], None]

_PROCESS = secrets.token_hex(4)


def sender_name() -> str:
    """Name this process, so that it does not wake itself twice; a fork has another name."""
    return f"{_PROCESS}-{os.getpid()}"


class Switchboard:
    """The lines of one process to one database, shared by its queues."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._something_to_tell = threading.Event()
        self._untold: dict[str, int] = {}
        self._listeners: defaultdict[str, list[OnAlert]] = defaultdict(list)
        self._sending: threading.Thread | None = None
        self._hearing: threading.Thread | None = None

    def add(self, kind: str, on_alert: OnAlert) -> None:
        """Connect a queue."""
        with self._lock:
            self._closed.clear()
            self._listeners[kind].append(on_alert)

    def remove(self, kind: str, on_alert: OnAlert) -> None:
        """Disconnect a queue; the last one takes the lines down, once all is told."""
        with self._lock:
            self._listeners[kind].remove(on_alert)
            if any(self._listeners.values()):
                return
            self._closed.set()
            self._something_to_tell.set()
            sending, self._sending, self._hearing = self._sending, None, None
        if sending is not None:
            sending.join(CLOSE_WITHIN)

    def tell(self, settings: Settings, kind: str, due_at: int) -> None:
        """Pass a due time on; of several, the earliest."""
        with self._lock:
            self._untold[kind] = min(due_at, self._untold.get(kind, due_at))
            self._something_to_tell.set()
            if self._sending is None:
                self._sending = self._start(self._send, settings)

    def listen(self, settings: Settings) -> None:
        """Open the line on which the others are heard."""
        with self._lock:
            if self._hearing is None:
                self._hearing = self._start(self._hear, settings)

    def _start(self, work: Line, settings: Settings) -> threading.Thread:
        thread = threading.Thread(
            target=self._keep_up, args=(work, settings), name="duequeue-alerts", daemon=True
        )
        thread.start()
        return thread

    def _keep_up(self, work: Line, settings: Settings) -> None:
        """Do the work on a connection, and on another one whenever it is lost."""
        while True:
            try:
                with psycopg.connect(
                    settings.conninfo, **settings.connection_arguments
                ) as connection:
                    work(connection)
            except psycopg.Error as error:
                reason = settings.address.clean(str(error)).strip()
                logger.warning("%s: wake-ups wait for polls now: %s", settings.address, reason)
            if self._closed.wait(RETRY_EVERY):
                return

    def _send(self, connection: psycopg.Connection) -> None:
        while not self._closed.is_set() or self._untold:
            self._something_to_tell.wait()
            self._something_to_tell.clear()
            with self._lock:
                untold, self._untold = self._untold, {}
            for kind, due_at in untold.items():
                parameters = {"kind": kind, "due_at": due_at, "sender": sender_name()}
                connection.execute(queries()["notify_waiters"], parameters)
            self._closed.wait(SEND_EVERY)

    def _hear(self, connection: psycopg.Connection) -> None:
        connection.execute("LISTEN duequeue")
        for kind in list(self._listeners):
            self._alert(kind, None)  # of whatever was told before this line stood
        while not self._closed.is_set():
            for notification in connection.notifies(timeout=CLOSE_WITHIN):
                sender, due_at, kind = notification.payload.split(" ", 2)
                if sender != sender_name():
                    self._alert(kind, int(due_at))

    def _alert(self, kind: str, due_at: int | None) -> None:
        with self._lock:
            listeners = list(self._listeners.get(kind, ()))
        for on_alert in listeners:
            on_alert(due_at)


switchboards = Shared(Switchboard)


class PostgresAlerts:
    """One queue's place at the switchboard; see `alerts.Alerts`."""

    def __init__(self, settings: Settings, kind: str, on_alert: OnAlert) -> None:
        self._settings = settings
        self._kind = kind
        self._on_alert = on_alert
        self._switchboard = switchboards.get(str(settings.address))
        self._switchboard.add(kind, on_alert)

    def tell(self, due_at: int) -> None:
        """Have a NOTIFY sent."""
        self._switchboard.tell(self._settings, self._kind, due_at)

    def listen(self) -> None:
        """Have LISTEN going."""
        self._switchboard.listen(self._settings)

    def close(self) -> None:
        """Leave the switchboard."""
        self._switchboard.remove(self._kind, self._on_alert)

"""Another process's commit shows in SQLite's `data_version`, which is cheap to look at."""

import logging
import sqlite3
import threading
from functools import partial
from time import monotonic

from duequeue.port.alerts import OnAlert
from duequeue.stores.sql.sqlite.file_connection import FileConnection

logger = logging.getLogger("duequeue.sqlite")

LOOK_EVERY = 0.005
# A consumer that goes on waiting asks again in time; a thread each time would cost more.
LINGER = 5.0


class FileAlerts:
    """Watches the file, on a thread of its own, while somebody listens."""

    def __init__(self, path: str, on_alert: OnAlert) -> None:
        self._path = path
        self._on_alert = on_alert
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._watching = False
        self._until = 0.0

    def sender(self) -> None:
        """Return none: the commit is the message."""

    def tell(self, due_at: int) -> None:
        """Do nothing: the commit is the message."""

    def listen(self, seconds: float) -> None:
        """Watch for a while longer."""
        with self._lock:
            self._until = max(self._until, monotonic() + seconds + LINGER)
            if not self._watching and not self._closed.is_set():
                self._watching = True
                threading.Thread(target=self._watch, name="duequeue-watch", daemon=True).start()

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()

    def _watch(self) -> None:
        file = FileConnection(
            partial(sqlite3.connect, self._path, isolation_level=None, check_same_thread=False)
        )
        seen: object = None
        try:
            while self._goes_on():
                with file.in_use() as connection:
                    (version,) = connection.execute("PRAGMA data_version").fetchone()
                if (connection, version) != seen:  # each connection counts for itself
                    seen = (connection, version)
                    self._on_alert(None)
                self._closed.wait(LOOK_EVERY)
        except sqlite3.Error:
            logger.exception("stopped watching %s; messages are found by polling", self._path)
            with self._lock:
                self._watching = False
        finally:
            file.close()

    def _goes_on(self) -> bool:
        with self._lock:
            self._watching = monotonic() < self._until and not self._closed.is_set()
            return self._watching

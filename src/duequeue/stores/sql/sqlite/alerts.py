"""Another process's commit shows in SQLite's `data_version`, which is cheap to read.

So a commit itself notifies the other processes, and nothing has to be sent.
"""

import logging
import threading
from time import monotonic

from duequeue.errors import QueueClosed, StoreError
from duequeue.port.alerts import Alerts, OnAlert
from duequeue.process.contact import one_line
from duequeue.stores.sql.sqlite.session import SqliteSession

logger = logging.getLogger("duequeue.sqlite")

LOOK_EVERY = 0.005
# A consumer that keeps waiting calls `listen` again within this time. To start a thread each time
# would cost more.
LINGER = 5.0


class FileAlerts(Alerts):
    """Watches the file, on a thread of its own, while somebody listens.

    It reads the version on the very connection that writes, because only there are the queue's
    own commits left out. While that connection is busy, the watching thread waits for it; but a
    woken consumer would have to wait for it as well.
    """

    def __init__(self, session: SqliteSession, on_alert: OnAlert) -> None:
        self._session = session
        self._on_alert = on_alert
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._watching = False
        self._until = 0.0
        self._seen: object = None

    def listen(self, seconds: float, *, for_answers: bool = False) -> None:  # noqa: ARG002 - every commit shows
        """Watch for a while longer."""
        with self._lock:
            self._until = max(self._until, monotonic() + seconds + LINGER)
            if not self._watching and not self._closed.is_set():
                self._watching = True
                threading.Thread(target=self._watch, name="duequeue-watch", daemon=True).start()

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()

    def look(self) -> None:
        """Alert if another connection has committed since the last look, or at the first one."""
        version = self._session.foreign_version()
        if version != self._seen:
            self._seen = version
            self._on_alert(None)

    def _watch(self) -> None:
        try:
            while self._goes_on():
                self.look()
                self._closed.wait(LOOK_EVERY)
        except QueueClosed:
            self._closed.set()
        except StoreError as error:
            words = "stopped watching %s; messages are found by polling: %s"
            logger.warning(words, self._session.path, one_line(error))
            with self._lock:
                self._watching = False

    def _goes_on(self) -> bool:
        with self._lock:
            self._watching = monotonic() < self._until and not self._closed.is_set()
            return self._watching

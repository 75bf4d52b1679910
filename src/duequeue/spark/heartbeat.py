"""Leases are kept alive while a micro-batch runs."""

import logging
import threading
from collections.abc import Callable

from duequeue.errors import QueueClosed

LAST_BEAT_SECONDS = 5.0

logger = logging.getLogger("duequeue.spark")


class Heartbeat:
    """Calls `extend` at once and then at a regular interval, on its own thread."""

    def __init__(self, extend: Callable[[], object], seconds: float) -> None:
        self._extend = extend
        self._seconds = seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="duequeue-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Start no further call, and wait a few seconds for one that is already running."""
        self._stopped.set()
        self._thread.join(LAST_BEAT_SECONDS)

    def _beat(self) -> None:
        while not self._stopped.is_set():
            try:
                self._extend()
            except QueueClosed:
                return
            except Exception:  # whatever went wrong, the leases must be kept alive
                logger.exception("could not extend the leases, and will try again")
            self._stopped.wait(self._seconds)

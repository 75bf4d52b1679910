"""A thread with a connection of its own, for the wake-ups between processes."""

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

from duequeue.process.contact import contact_with

RETRY_EVERY = 1.0
# The first failures are not logged, because calls log an outage of the whole server by then.
SILENT_FAILURES = 6
CLOSE_WITHIN = 0.5
ANSWER_WITHIN = 10.0


C = TypeVar("C")


class FarEnd(Protocol):
    """The server that a line leads to."""

    @property
    def place(self) -> str:
        """The place of the store that is there."""

    @property
    def address(self) -> str:
        """Where it is, for people to read, without secrets."""

    @property
    def logger(self) -> logging.Logger:
        """Where an outage of the line is logged."""

    def clean(self, text: str) -> str:
        """Remove the secrets from a driver's message."""


class Line(Generic[C]):
    """A thread with a connection of its own, which it opens again whenever it is lost."""

    def __init__(
        self,
        far_end: FarEnd,
        connect: Callable[[], AbstractContextManager[C]],
        work: Callable[["Line[C]", C], None],
    ) -> None:
        self._far_end = far_end
        self._connect = connect
        self._work = work
        self._contact = contact_with(far_end.place, far_end.address)
        self._failures = 0
        self._warned = False
        self.connection: C | None = None
        self.is_working = False
        self.closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="duequeue-alerts", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, and give it a moment to finish."""
        self.closed.set()
        self._thread.join(CLOSE_WITHIN)

    def works(self) -> None:
        """Note that the line can do its work."""
        if self._warned:
            words = "%s: wake-ups between processes work again"
            self._far_end.logger.info(words, self._far_end.address)
        self._failures, self._warned = 0, False
        self.is_working = True

    def _run(self) -> None:
        while True:
            try:
                with self._connect() as connection:
                    self.connection = connection
                    self._work(self, connection)
            except Exception as error:  # noqa: BLE001 - after any error the line is opened again
                self._failed(error)
            self.connection, self.is_working = None, False
            if self.closed.wait(RETRY_EVERY):
                return

    def _failed(self, error: Exception) -> None:
        """Log once that the line does not work, unless an outage of the server is logged."""
        self._failures += 1
        silent = self._failures < SILENT_FAILURES or self._contact.is_lost or self.closed.is_set()
        if not (silent or self._warned):
            self._warned = True
            self._far_end.logger.warning(
                "%s: wake-ups between processes do not work; messages are found by polling until "
                "they do: %s",
                self._far_end.address,
                " ".join(self._far_end.clean(str(error)).split()),
            )

"""Wake-ups from a server: one request waits there on behalf of all who wait here."""

import logging
import threading
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from time import monotonic

import msgspec

from duequeue.backoff import jittered
from duequeue.errors import StoreError, StoreUnavailable
from duequeue.port.alerts import Alerts, Answered, OnAlert
from duequeue.port.remote import WakeUp, WakeUpCall, encode
from duequeue.process.contact import end_connection, one_line
from duequeue.stores.http.address import ServerAddress
from duequeue.stores.http.answers import read_answer
from duequeue.stores.http.connections import connect, send, shared_connections
from duequeue.stores.http.session import WAIT_PATH

logger = logging.getLogger("duequeue.http")

# One request waits this long. Proxies cut off requests that take a minute.
WAIT_SECONDS = 25.0
# Some more time for the answer to arrive.
SLACK_SECONDS = 10.0
# A consumer that keeps waiting calls `listen` again within this time.
LINGER = 5.0
LONGEST_PAUSE = 2.0

_decode = msgspec.msgpack.Decoder(WakeUp).decode


class HttpAlerts(Alerts):
    """Waits at the server, on a thread of its own, while somebody listens.

    The server wakes the others.
    """

    def __init__(self, address: ServerAddress, call: WakeUpCall, on_alert: OnAlert) -> None:
        self._address = address
        self._call = call
        self._on_alert = on_alert
        self._connections = shared_connections(address)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        # That of the thread that waits, if one does.
        self._connection: HTTPConnection | None = None
        self._until = 0.0

    def sender(self) -> str:
        """Return the name of this client, since the server wakes the others with each offer."""
        return self._call.sender

    def listen(self, seconds: float, *, for_answers: bool = False) -> None:  # noqa: ARG002 - it asks for everything
        """Wait at the server for a while longer."""
        with self._lock:
            self._until = max(self._until, monotonic() + seconds + LINGER)
            if self._connection is None and not self._closed.is_set():
                connection = self._connections.new()
                threading.Thread(
                    target=self._wait, args=(connection,), name="duequeue-http", daemon=True
                ).start()
                self._connection = connection

    def close(self) -> None:
        """Stop waiting."""
        self._closed.set()
        with self._lock:
            connection = self._connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):  # the thread reads nothing any more, and ends
                end_connection(connection.sock)

    def _wait(self, connection: HTTPConnection) -> None:
        failures = 0
        try:
            while self._goes_on():
                try:
                    self._wait_once(connection)
                    failures = 0
                except (StoreUnavailable, OSError, HTTPException):
                    # The calls of the queue itself report an outage.
                    connection.close()
                    self._call.source = ""
                    failures += 1
                    self._closed.wait(jittered(min(LONGEST_PAUSE, 0.05 * 2 ** min(failures, 6))))
        except StoreError as error:
            words = "no wake-ups from %s; messages are found by polling: %s"
            logger.warning(words, self._address.text, one_line(error))
            self._closed.wait(LINGER)
        finally:
            with self._lock:
                if self._connection is connection:  # otherwise another thread waits by now
                    self._connection = None
            connection.close()

    def _wait_once(self, connection: HTTPConnection) -> None:
        body, limit = encode(self._call), WAIT_SECONDS + SLACK_SECONDS
        connect(connection, limit)
        if self._closed.is_set():  # `close` may have found no socket to end
            return
        status, answer = send(connection, self._address, WAIT_PATH, body, limit)
        found = read_answer(status, answer, _decode, self._address.text)
        self._call.source, self._call.heard = found.source, found.heard
        if self._closed.is_set():
            return
        for key in found.answered:
            self._on_alert(Answered(key))
        if found.rang:
            self._on_alert(found.due_at)

    def _goes_on(self) -> bool:
        with self._lock:
            if monotonic() < self._until and not self._closed.is_set():
                return True
            self._connection = None
            return False

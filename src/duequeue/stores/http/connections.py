"""Connections of the blocking face, which the queues of a process share, and single requests."""

import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from math import isfinite
from time import monotonic

from duequeue.port.store import LONGEST_CALL
from duequeue.process.shared import Shared
from duequeue.stores.http import answers
from duequeue.stores.http.address import ServerAddress
from duequeue.stores.http.answers import without_answer

CONNECT_SECONDS = 10.0
# Servers and proxies close connections that are idle for longer, often after 60 seconds.
LONGEST_IDLE = 30.0
MOST_IDLE = 32
# The server ends a long call in time; if it does not, we do so this much later.
SLACK_SECONDS = 5.0

SECONDS = 30.0
JSON = "application/json"


class ClientConnections:
    """A pool that threads share; the connection that was used last is used first.

    Idle connections are kept for as long as the pool has users.
    """

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._tls: ssl.SSLContext | None = None
        self._lock = threading.Lock()
        self._idle: list[tuple[float, HTTPConnection]] = []
        self._users = 0

    def join(self) -> None:
        """Count one more user; the first one reads the trusted authorities."""
        with self._lock:
            if not self._users:
                self._tls = self._address.tls()
            self._users += 1

    def leave(self) -> None:
        """Count one user fewer, and close the idle connections after the last one."""
        with self._lock:
            self._users -= 1
            idle: list[tuple[float, HTTPConnection]] = []
            if not self._users:
                idle, self._idle = self._idle, idle
        for _, connection in idle:
            connection.close()

    def post(self, path: str, body: bytes, seconds: float) -> tuple[int, bytes]:
        """Send a request, and return the status and the body of the answer."""
        with self._in_use() as connection:
            if seconds < LONGEST_CALL:
                return send(connection, self._address, path, body, seconds)
            connect(connection, CONNECT_SECONDS)
            with answers.given_up_in_silence(connection.sock, self._answers):
                return send(connection, self._address, path, body, seconds + SLACK_SECONDS)

    def new(self) -> HTTPConnection:
        """Return a connection that connects with its first request."""
        host, port = self._address.host, self._address.port
        if self._address.scheme != "https":
            return HTTPConnection(host, port, timeout=CONNECT_SECONDS)
        if self._tls is None:  # an awaiting queue only waits for wake-ups here, without joining
            self._tls = self._address.tls()
        return HTTPSConnection(host, port, timeout=CONNECT_SECONDS, context=self._tls)

    def _answers(self) -> bool:
        """Return whether the server answers on a new connection."""
        connection = self.new()
        connection.timeout = answers.PROBE_SECONDS
        try:
            connection.request("GET", self._address.path + answers.PROBE_PATH)
            return connection.getresponse().status not in answers.NOT_FROM_SERVER
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    @contextmanager
    def _in_use(self) -> Iterator[HTTPConnection]:
        connection = self._take()
        try:
            yield connection
        except (OSError, HTTPException) as error:
            connection.close()
            raise without_answer(error, self._address.text) from error
        except BaseException:  # the answer to an interrupted request must not be read by the next
            connection.close()
            raise
        self._give(connection)

    def _take(self) -> HTTPConnection:
        while True:
            with self._lock:
                if not self._idle:
                    break
                since, connection = self._idle.pop()
            if monotonic() - since < LONGEST_IDLE and _is_quiet(connection):
                return connection
            connection.close()
        return self.new()

    def _give(self, connection: HTTPConnection) -> None:
        with self._lock:
            if self._users and connection.sock is not None and len(self._idle) < MOST_IDLE:
                self._idle.append((monotonic(), connection))
                return
        connection.close()


_connections: Shared[ClientConnections] = Shared()


def shared_connections(address: ServerAddress) -> ClientConnections:
    """Return the connections of this process to a server with one token."""
    return _connections.get(address, partial(ClientConnections, address))


def send(
    connection: HTTPConnection,
    address: ServerAddress,
    path: str,
    body: bytes,
    seconds: float,
) -> tuple[int, bytes]:
    """Send a request on a connection, and read the whole answer."""
    connect(connection, seconds)
    connection.sock.settimeout(seconds if isfinite(seconds) else None)
    connection.request("POST", address.path + path, body, address.headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def connect(connection: HTTPConnection, seconds: float) -> None:
    """Open a connection, unless it is open."""
    if connection.sock is None:
        connection.timeout = min(CONNECT_SECONDS, seconds)
        connection.connect()
        keep_alive(connection.sock)  # type: ignore[arg-type] # it has one now


def keep_alive(connection: socket.socket) -> None:
    """Let the system notice within a minute that the other side is gone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _is_quiet(connection: HTTPConnection) -> bool:
    """Return whether nothing has come since the last answer; otherwise the server has closed it."""
    if not hasattr(select, "poll"):  # as on Windows
        return select.select([connection.sock], [], [], 0) == ([], [], [])
    poller = select.poll()
    poller.register(connection.sock, select.POLLIN)
    return not poller.poll(0)


class ServerRequests:
    """Sends requests to one server, each on a connection of its own."""

    def __init__(self, url: str, token: str | None) -> None:
        self._address = ServerAddress.from_url(url, token)
        self._connections = ClientConnections(self._address)
        self._connections.join()

    def send(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        """Send a request, and return the status and the body of the answer."""
        headers = {**self._address.headers, "Accept": JSON, "Content-Type": JSON}
        if body is None:
            del headers["Content-Type"]
        connection = self._connections.new()
        connection.timeout = SECONDS
        try:
            connection.request(method, self._address.path + path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise without_answer(error, self._address.text) from error
        finally:
            connection.close()

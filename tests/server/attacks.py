"""Clients that mean harm, against a `duequeue serve` in a process of its own."""

import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.server.command import ServeProcess

MEGABYTE = 1024 * 1024
PATIENCE = 30.0
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
UPLOAD = (
    b"POST /v1/queues/q/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
)


class Attacked(NamedTuple):
    """How many bytes the server took, and what it answered."""

    sent: int
    answer: bytes


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def attack(port: int, begin: bytes, endless: bytes, most: int = 64 * MEGABYTE) -> Attacked:
    """Send without an end, until the server resets the connection."""
    sent = 0
    with connect(port) as connection:
        with suppress(OSError):
            connection.sendall(begin)
            while sent < most:
                connection.sendall(endless)
                sent += len(endless)
        return Attacked(sent, received(connection))


def received(connection: socket.socket) -> bytes:
    """Return what comes until the server closes or resets the connection."""
    parts = []
    with suppress(ConnectionError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def status(answer: bytes) -> int:
    """Return the status of an answer."""
    return int(answer.split(b" ", 2)[1])


def ask(port: int, path: bytes = b"/healthz") -> bytes:
    """Return the answer on a connection of its own."""
    with connect(port) as connection:
        connection.sendall(
            b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        return received(connection)


class Memory:
    """The most memory that a process has used since this was made."""

    def __init__(self, server: ServeProcess) -> None:
        self._folder = Path("/proc") / str(server.process.pid)
        (self._folder / "clear_refs").write_text("5")  # begin to measure the peak again
        self._before = self._peak()

    def growth(self) -> int:
        """Return by how many bytes it has grown at most."""
        return self._peak() - self._before

    def _peak(self) -> int:
        lines: Iterable[str] = (self._folder / "status").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024

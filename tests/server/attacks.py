"""Clients that mean harm, against a `duequeue serve` in a process of its own."""

import socket
import ssl
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
# How a request begins and how it goes on without an end.
ENDLESS = {
    "small fields": (HEAD, b"a: b\r\n" * 10_000),
    "empty fields": (HEAD, b"a:\r\n" * 15_000),
    "one value": (HEAD + b"a: ", b"x" * 65536),
    "one name": (HEAD, b"x" * 65536),
    "url": (b"GET /", b"x" * 65536),
    "query": (b"GET /?", b"x=1&" * 15_000),
    "empty lines": (b"", b"\r\n" * 30_000),
    "trailers": (UPLOAD + b"0\r\n", b"a: b\r\n" * 10_000),
    "one trailer": (UPLOAD + b"0\r\na: ", b"x" * 65536),
    "chunk extension": (UPLOAD + b"1;", b"x" * 65536),
}


class Attacked(NamedTuple):
    """How many bytes the server took, and what it answered."""

    sent: int
    answer: bytes


def connect(port: int, address: str = "127.0.0.1") -> socket.socket:
    """Connect from an address of this machine."""
    return socket.create_connection(("127.0.0.1", port), PATIENCE, source_address=(address, 0))


def secured(connection: socket.socket, trust: ssl.SSLContext | None) -> socket.socket:
    """Make a connection secure, if it is to be."""
    if trust is None:
        return connection
    return trust.wrap_socket(connection, server_hostname="127.0.0.1")


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


def ask(
    port: int,
    path: bytes = b"/healthz",
    address: str = "127.0.0.1",
    trust: ssl.SSLContext | None = None,
) -> bytes:
    """Return the answer on a connection of its own, which is secure if there is a trust."""
    with connect(port, address) as plain, secured(plain, trust) as connection:
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


def hello() -> bytes:
    """Return the beginning of a handshake."""
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(
        ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1"
    )
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def message_of(length: int) -> bytes:
    """Return a first message, as its header announces it."""
    return b"\x01" + (length - 4).to_bytes(3) + bytes(length - 4)


def in_records(message: bytes, size: int) -> bytes:
    """Return a message as TLS sends it, in records of a size."""
    parts = [message[start : start + size] for start in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + len(part).to_bytes(2) + part for part in parts)


# The beginning of a handshake that announces much, and sends nearly all of it.
ANNOUNCED = in_records(message_of(131_000)[:120_000], 16_384)

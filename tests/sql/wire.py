"""A wire to a PostgreSQL server on which statements and answers are counted."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, Self
from urllib.parse import urlsplit, urlunsplit

STATEMENTS = {b"Q", b"E"}  # the simple protocol's Query, the extended protocol's Execute
ANSWER = {b"Z"}  # ReadyForQuery


@dataclass(frozen=True)
class Traffic:
    """What has gone over a wire."""

    statements: int
    round_trips: int


class Wire:
    """Listens on a port of its own, and passes everything on to the server and back."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self._statements = Counter(STATEMENTS)
        self._answers = Counter(ANSWER)
        login, port = parts.netloc.rpartition("@")[0], self._listener.getsockname()[1]
        self.url = urlunsplit(
            parts._replace(
                netloc=f"{login}@127.0.0.1:{port}", query="sslmode=disable&gssencmode=disable"
            )
        )

    def traffic_of(self, call: Callable[[], object]) -> Traffic:
        """Make a call; return how many statements it sent, and how often it waited."""
        statements, answers = self._statements.total, self._answers.total
        call()
        return Traffic(self._statements.total - statements, self._answers.total - answers)

    def __enter__(self) -> Self:
        _start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._connect(client, socket.create_connection(self._server))

    def _connect(self, client: socket.socket, server: socket.socket) -> None:
        for end in (client, server):
            self._sockets.append(end)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _start(partial(_pass_on, client, server, self._statements, starts=True))
        _start(partial(_pass_on, server, client, self._answers))


class Counter:
    """Counts messages of some types, from several threads."""

    def __init__(self, types: set[bytes]) -> None:
        self._types = types
        self._lock = threading.Lock()
        self.total = 0

    def count(self, message_type: bytes) -> None:
        with self._lock:
            self.total += message_type in self._types


def _start(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


def _pass_on(
    source: socket.socket, target: socket.socket, counter: Counter, *, starts: bool = False
) -> None:
    with suppress(OSError, EOFError), source.makefile("rb") as stream:
        if starts:
            target.sendall(_sized(stream))  # the first message has no type
        while True:
            message_type = _read(stream, 1)
            message = message_type + _sized(stream)
            counter.count(message_type)  # before anybody can act on it
            target.sendall(message)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _sized(stream: BinaryIO) -> bytes:
    """Read what begins with its own length, of which the length is part."""
    length = _read(stream, 4)
    return length + _read(stream, int.from_bytes(length) - 4)


def _read(stream: BinaryIO, length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data

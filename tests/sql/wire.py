"""A wire to a PostgreSQL server on which all that passes is noted."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO, Self, TypeAlias
from urllib.parse import urlsplit, urlunsplit

STATEMENTS = {b"Q", b"E"}  # the simple protocol's Query, the extended protocol's Execute
ANSWER = b"Z"  # ReadyForQuery
OUTSIDE_TRANSACTION = b"I"
NOTICE = b"N"


Messages: TypeAlias = list[tuple[bytes, bytes]]  # each a type and a body


@dataclass(frozen=True)
class Traffic:
    """What has gone over a wire, and what the server remarked meanwhile."""

    statements: int
    round_trips: int
    transactions: int
    notices: list[str] = field(default_factory=list, compare=False)


class Wire:
    """Listens on a port of its own, and passes everything on to the server and back."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self._sent: Messages = []
        self._answered: Messages = []
        login, port = parts.netloc.rpartition("@")[0], self._listener.getsockname()[1]
        self.url = urlunsplit(
            parts._replace(
                netloc=f"{login}@127.0.0.1:{port}", query="sslmode=disable&gssencmode=disable"
            )
        )

    @property
    def statements(self) -> int:
        """How many statements were sent so far."""
        return sum(kind in STATEMENTS for kind, _ in list(self._sent))

    def traffic_of(self, call: Callable[[], object]) -> Traffic:
        """Make a call; return what it sent, how often it waited, and what it committed."""
        statements, first_answer = self.statements, len(self._answered)
        call()
        answered = self._answered[first_answer:]
        ends = [body for kind, body in answered if kind == ANSWER]
        return Traffic(
            self.statements - statements,
            len(ends),
            ends.count(OUTSIDE_TRANSACTION),
            [_text(body) for kind, body in answered if kind == NOTICE],
        )

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
        _start(partial(_pass_on, client, server, self._sent, starts=True))
        _start(partial(_pass_on, server, client, self._answered))


def _start(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


def _pass_on(
    source: socket.socket, target: socket.socket, passed: Messages, *, starts: bool = False
) -> None:
    with suppress(OSError, EOFError), source.makefile("rb") as stream:
        if starts:
            target.sendall(_sized(stream))  # the first message has no type
        while True:
            kind, message = _read(stream, 1), _sized(stream)
            passed.append((kind, message[4:]))  # before anybody can act on it
            target.sendall(kind + message)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _sized(stream: BinaryIO) -> bytes:
    """Read what begins with its own length, of which the length is part."""
    length = _read(stream, 4)
    return length + _read(stream, int.from_bytes(length) - 4)


def _text(notice: bytes) -> str:
    """Return what a notice says: of its fields, each a letter and a string, the one with M."""
    fields = {part[:1]: part[1:].decode() for part in notice.split(b"\0") if part}
    return fields[b"M"]


def _read(stream: BinaryIO, length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data

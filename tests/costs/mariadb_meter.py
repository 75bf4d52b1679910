"""Counts what a call costs on MariaDB: packets on the way, and what the server counts itself."""

import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from typing import NamedTuple, Self
from urllib.parse import urlsplit, urlunsplit

from tests.fixtures.mariadb import connected

HEADER = 4  # the length of a packet in three bytes, and its number in a conversation
STATUS = "SHOW GLOBAL STATUS WHERE variable_name REGEXP '^(Com_begin|Handler_|Questions)'"
ROWS_READ = ("key", "first", "last", "next", "prev", "rnd", "rnd_next")


class Cost(NamedTuple):
    """What a call cost."""

    round_trips: int
    statements: int
    transactions: int
    rows_read: int
    rows_written: int


class MariadbMeter:
    """Listens on a port of its own, passes everything on to the server, and counts."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server_url = url
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self._exits = ExitStack()
        self.commands = 0
        login, port = parts.netloc.rpartition("@")[0], self._listener.getsockname()[1]
        self.url = urlunsplit(
            parts._replace(netloc=f"{login}@127.0.0.1:{port}", query="ssl_mode=disabled")
        )

    def cost_of(self, call: Callable[[], object]) -> Cost:
        """Make a call, and return its cost."""
        commands = self.commands
        spent = self._spent(call) - self._spent(lambda: None)  # what it costs to ask
        return Cost(
            self.commands - commands,
            spent["Questions"],
            # Without BEGIN, each statement is a transaction.
            spent["Com_begin"] or spent["Questions"],
            sum(spent[f"Handler_read_{how}"] for how in ROWS_READ),
            sum(spent[f"Handler_{what}"] for what in ("write", "update", "delete")),
        )

    def __enter__(self) -> Self:
        _start(self._accept)
        # The server counts the end of a connection some time later, so only one is used.
        self._cursor = self._exits.enter_context(connected(self._server_url))
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _spent(self, call: Callable[[], object]) -> Counter[str]:
        before = self._status()
        call()
        return self._status() - before

    def _status(self) -> Counter[str]:
        self._cursor.execute(STATUS)
        return Counter({str(name): int(value) for name, value in self._cursor.fetchall()})

    def _accept(self) -> None:
        parts = urlsplit(self._server_url)
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection((parts.hostname, parts.port))
                self._sockets += [client, server]
                _start(partial(self._pass_commands, client, server))
                _start(partial(_pass_answers, server, client))

    def _pass_commands(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError), client.makefile("rb") as stream:
            while header := stream.read(HEADER):
                # A command is number 0; the login and the rest of a long command are not.
                self.commands += header[3] == 0
                server.sendall(header + stream.read(int.from_bytes(header[:3], "little")))
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)


def _start(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


def _pass_answers(server: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while data := server.recv(65536):
            client.sendall(data)
    with suppress(OSError):
        client.shutdown(socket.SHUT_WR)

"""A way to the server on which notifications get lost, as behind a pooler in transaction mode."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

NOTIFICATION = b"A"
HEADER = 5  # one byte for the kind of message, four for its length


class DeafProxy:
    """Passes everything on but the server's notifications, which it counts."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._server = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        port = self._listener.getsockname()[1]
        login = parts.netloc.rpartition("@")[0]
        # Without encryption, every answer of the server is a message with a header.
        self.url = urlunsplit(
            parts._replace(
                netloc=f"{login}@127.0.0.1:{port}", query="sslmode=disable&gssencmode=disable"
            )
        )
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                for work in (self._pass_on_requests, self._pass_on_answers):
                    threading.Thread(target=work, args=(client, server), daemon=True).start()

    def _pass_on_requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _pass_on_answers(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError), server.makefile("rb") as answers:
            while len(header := answers.read(HEADER)) == HEADER:
                body = answers.read(int.from_bytes(header[1:]) - 4)
                if header[:1] == NOTIFICATION:
                    self.lost += 1
                else:
                    client.sendall(header + body)


@contextmanager
def deaf_proxy(url: str) -> Iterator[DeafProxy]:
    proxy = DeafProxy(url)
    try:
        yield proxy
    finally:
        proxy.close()

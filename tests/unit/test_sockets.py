"""The end of a connection, with and without TLS."""

import socket
import ssl
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from duequeue.process.contact import end_connection
from tests.fixtures.certificates import self_signed

SECRET = b"an answer that only its reader may see"


def test_a_connection_that_was_ended_has_nothing_to_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        end_connection(ours)
        assert ours.recv(100) == b""


def test_what_is_read_after_the_end_is_never_encrypted(tmp_path: Path) -> None:
    ours, theirs = _secured_pair(tmp_path)
    with ours, theirs:
        theirs.sendall(SECRET)
        end_connection(ours)
        found = b""
        with suppress(OSError):
            found = ours.recv(1000)
        assert found in {b"", SECRET}


def test_a_connection_that_is_closed_cannot_be_ended() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            end_connection(ours)


def _secured_pair(folder: Path) -> tuple[ssl.SSLSocket, ssl.SSLSocket]:
    certificate, key = self_signed(folder, "localhost")
    accepting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    accepting.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=str(certificate))
    trusting.check_hostname = False
    ours, theirs = socket.socketpair()
    accepted: list[ssl.SSLSocket] = []
    other = Thread(target=lambda: accepted.append(accepting.wrap_socket(theirs, server_side=True)))
    other.start()
    client = trusting.wrap_socket(ours)
    other.join()
    return client, accepted[0]

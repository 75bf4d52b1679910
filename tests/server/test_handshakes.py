"""Connections count before their TLS handshake, which must end soon."""

import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from select import select
from typing import NamedTuple

import httpx
import pytest

from duequeue.contract.stage import until
from duequeue.server import app_for
from duequeue.server.certificate import Certificate
from duequeue.server.limits import Limits
from tests.fixtures.certificates import self_signed, signed
from tests.server.attacks import HEAD, ask, connect, received, status
from tests.server.served import Served, served

OK = 200
ALLOWED, REFUSED = 20, 50
OTHER = "127.0.0.2"


class Keys(NamedTuple):
    certificate: Certificate
    trust: ssl.SSLContext


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    folder = tmp_path_factory.mktemp("keys")
    authority, authority_key = self_signed(folder, "authority")
    certificate, key = signed(folder, "server", authority, authority_key)
    trust = ssl.create_default_context(cafile=str(authority))
    return Keys(Certificate(str(certificate), str(key)), trust)


@pytest.fixture
def secured(keys: Keys) -> Iterator[Served]:
    """A server that waits for handshakes, but allows few connections."""
    limits = Limits(connections=2 * ALLOWED, connections_per_address=ALLOWED, handshake_seconds=600)
    with served(app_for("memory:secured", limits=limits), keys.certificate) as server:
        yield server


def works(server: Served, keys: Keys, address: str = "127.0.0.1") -> bool:
    """Return whether a client reaches the server over TLS."""
    try:
        return status(ask(server.port, address=address, trust=keys.trust)) == OK
    except (OSError, IndexError):
        return False


def open_at(server: Served) -> int:
    """How many connections count, with those whose handshake has not ended."""
    counted: int = server._server.config.http.http.open._open  # type: ignore[union-attr] # noqa: SLF001
    return counted


def ended(connections: list[socket.socket]) -> list[socket.socket]:
    return select(connections, [], [], 0)[0]


@pytest.mark.skipif(sys.platform != "linux", reason="only there, all of 127.0.0.0/8 is local")
def test_silent_connections_are_limited_before_their_handshake(
    secured: Served, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    assert works(secured, keys)
    until(lambda: open_at(secured) == 0)
    with ExitStack() as stack:
        silent = [stack.enter_context(connect(secured.port)) for _ in range(ALLOWED + REFUSED)]
        until(lambda: len(ended(silent)) == REFUSED)
        assert [received(each) for each in ended(silent)] == [b""] * REFUSED
        assert works(secured, keys, OTHER)
        assert not works(secured, keys)
        assert f"{ALLOWED} connections from 127.0.0.1 are open" in caplog.text
        until(lambda: open_at(secured) == ALLOWED)
    until(lambda: open_at(secured) == 0)
    assert works(secured, keys)


def test_a_handshake_that_does_not_end_is_given_up(keys: Keys) -> None:
    limits = Limits(handshake_seconds=1.0)
    with served(app_for("memory:handshakes", limits=limits), keys.certificate) as server:
        until(lambda: works(server, keys))
        with connect(server.port) as silent, connect(server.port) as slow:
            slow.sendall(hello(keys)[:100])
            assert received(silent) == received(slow) == b""
        until(lambda: works(server, keys))
        until(lambda: open_at(server) == 0)


@pytest.mark.parametrize("first", [b"", HEAD + b"\r\n", b"\x16\x03"], ids=["none", "http", "tls"])
def test_a_handshake_that_fails_counts_no_more(secured: Served, keys: Keys, first: bytes) -> None:
    with connect(secured.port) as connection:
        connection.sendall(first)
    until(lambda: open_at(secured) == 0)
    with connect(secured.port) as connection:
        connection.sendall(hello(keys))
        assert connection.recv(10)
        until(lambda: open_at(secured) == 1)
    until(lambda: open_at(secured) == 0)


def test_a_connection_counts_for_as_long_as_it_is_open(secured: Served, keys: Keys) -> None:
    with httpx.Client(base_url=secured.url, verify=keys.trust, trust_env=False) as http:
        for _ in range(2):
            assert http.get("/healthz").status_code == OK
            assert open_at(secured) == 1
    until(lambda: open_at(secured) == 0)


def test_a_server_stops_before_a_handshake_ends(keys: Keys) -> None:
    limits = Limits(handshake_seconds=600)
    with ExitStack() as stack:
        with served(app_for("memory:stops", limits=limits), keys.certificate) as server:
            silent = stack.enter_context(connect(server.port))
            until(lambda: open_at(server) == 1)
        assert received(silent) == b""


def hello(keys: Keys) -> bytes:
    """Return the beginning of a handshake."""
    outgoing = ssl.MemoryBIO()
    client = keys.trust.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()

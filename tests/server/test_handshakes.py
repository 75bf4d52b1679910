"""Connections count before their TLS handshake, which must end soon and take little memory."""

import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from select import select
from typing import NamedTuple

import httpx
import pytest

from duequeue.contract.stage import until
from duequeue.server import app_for
from duequeue.server.certificate import Certificate
from duequeue.server.client_hello import MOST_BYTES, MOST_RECORDS, NotAHello, bytes_needed
from duequeue.server.limits import Limits
from tests.fixtures.certificates import self_signed, signed
from tests.server.attacks import (
    ANNOUNCED,
    HEAD,
    MEGABYTE,
    Memory,
    ask,
    connect,
    hello,
    in_records,
    message_of,
    received,
    status,
)
from tests.server.attacks import secured as secured_by
from tests.server.command import serving
from tests.server.served import Served, served
from tests.server.siege import secure

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
            slow.sendall(hello()[:100])
            assert received(silent) == received(slow) == b""
        until(lambda: works(server, keys))
        until(lambda: open_at(server) == 0)


@pytest.mark.parametrize("first", [b"", HEAD + b"\r\n", b"\x16\x03"], ids=["none", "http", "tls"])
def test_a_handshake_that_fails_counts_no_more(secured: Served, keys: Keys, first: bytes) -> None:
    with connect(secured.port) as connection:
        connection.sendall(first)
    until(lambda: open_at(secured) == 0)
    with connect(secured.port) as connection:
        connection.sendall(hello())
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


def test_an_idle_client_does_not_hold_up_a_stop(
    keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    """It does not take its leave, because it does not look at its connections now."""
    with ExitStack() as stack:
        with served(app_for("memory:idle"), keys.certificate) as server:
            plain = stack.enter_context(connect(server.port))
            idle = stack.enter_context(secured_by(plain, keys.trust))
            idle.sendall(HEAD + b"\r\n")
            assert idle.recv(1000)
        assert "timeout graceful shutdown exceeded" not in caplog.text


def test_what_a_client_announces_takes_no_memory(tmp_path: Path) -> None:
    """OpenSSL takes it at once, for a message that may be 128 KiB long."""
    many = 300
    options, trust = secure(tmp_path)
    with serving("--no-push", *options, folder=tmp_path) as server, ExitStack() as stack:
        for _ in range(20):
            ask(server.port, trust=trust)
        memory = Memory(server)
        hostile = [stack.enter_context(connect(server.port)) for _ in range(many)]
        for each in hostile:
            with suppress(ConnectionError):
                each.sendall(ANNOUNCED)
        assert {received(each) for each in hostile} == {b""}
        assert memory.growth() < 10 * MEGABYTE


@pytest.mark.skipif(sys.platform != "linux", reason="only there, all of 127.0.0.0/8 is local")
def test_handshakes_wait_for_those_under_way(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duequeue.server.handshakes.HURRIED_SECONDS", 600)
    limits = Limits(handshakes=2, handshakes_per_address=1, handshake_seconds=600)
    with served(app_for("memory:places", limits=limits), keys.certificate) as server:
        with ExitStack() as stack:
            first, second = (stack.enter_context(connect(server.port)) for _ in range(2))
            for each in (first, second):
                each.sendall(hello())
            answering = stack.enter_context(ready_of(first, second))
            assert works(server, keys, OTHER)
            assert not ended([each for each in (first, second) if each is not answering])
            answering.close()
            stack.enter_context(ready_of(*({first, second} - {answering})))
        assert works(server, keys)


def test_handshakes_that_hold_all_places_have_to_hurry(keys: Keys) -> None:
    limits = Limits(handshakes_per_address=3, handshake_seconds=600)
    with served(app_for("memory:hurry", limits=limits), keys.certificate) as server:
        with ExitStack() as stack:
            for _ in range(3):
                holding = stack.enter_context(connect(server.port))
                holding.sendall(hello())
                assert ready_of(holding) is holding
            assert works(server, keys)
        until(lambda: open_at(server) == 0)


def ready_of(*connections: socket.socket) -> socket.socket:
    """Wait for the first of these to which the server says something."""
    return select(connections, [], [], 20)[0][0]


@pytest.mark.parametrize("size", [1, 2, 7, 100, 16_384])
def test_a_message_may_come_in_any_parts(secured: Served, keys: Keys, size: int) -> None:
    with connect(secured.port) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        shake_hands(connection, keys.trust, size)


def test_over_a_unix_socket_a_message_may_come_in_parts_too(tmp_path: Path) -> None:
    options, trust = secure(tmp_path)
    path, whole = str(tmp_path / "due.sock"), hello()
    with (
        serving("--no-push", "--socket", path, *options, folder=tmp_path),
        socket.socket(socket.AF_UNIX) as slow,
        socket.socket(socket.AF_UNIX) as quick,
    ):
        slow.connect(path)
        slow.sendall(whole[:100])
        quick.connect(path)
        shake_hands(quick, trust, len(whole))  # so the server has seen the first part
        slow.sendall(whole[100:])
        assert slow.recv(1) == b"\x16"


def shake_hands(connection: socket.socket, trust: ssl.SSLContext, size: int) -> None:
    """Go through a handshake, and send it in parts of a size."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trust.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    while client.version() is None or outgoing.pending:
        with suppress(ssl.SSLWantReadError):
            client.do_handshake()
        sent = outgoing.read()
        for start in range(0, len(sent), size):
            connection.sendall(sent[start : start + size])
        if client.version() is None:
            part = connection.recv(65536)
            assert part, "the server has closed the connection"
            incoming.write(part)


def test_a_message_may_be_cut_into_records(secured: Served, keys: Keys) -> None:
    message = hello()[5:]
    with connect(secured.port) as connection:
        connection.sendall(in_records(message, 1 + len(message) // MOST_RECORDS))
        assert connection.recv(1) == b"\x16"


@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"\r\n",
        b"\x15\x03\x01\x00\x02\x02\x28" + bytes(2),
        b"\x16\x02" + bytes(7),
        b"\x16\x03\x01\x00\x00" * 2,
        b"\x16\x03\x01\xff\xff\x01\x00\xff\xfb",
        b"\x16\x03\x01\x00\x04\x01\x00\x40\x00",
        b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",
        b"\x16\x03\x01\x00\x01\x01" * (MOST_RECORDS + 1),
    ],
    ids=["http", "alert", "ssl 2", "empty", "long record", "long", "server's", "many records"],
)
def test_what_does_not_begin_a_handshake_is_refused_at_once(secured: Served, sent: bytes) -> None:
    with connect(secured.port) as connection:
        connection.sendall(sent)
        assert received(connection) == b""
    until(lambda: open_at(secured) == 0)


@pytest.mark.parametrize("size", [1 + 2000 // MOST_RECORDS, 600, 3000])
def test_how_many_bytes_are_needed(size: int) -> None:
    whole = in_records(message_of(2000), size)
    for come in range(len(whole)):
        assert come < bytes_needed(whole[:come]) <= len(whole)
    assert bytes_needed(whole) == len(whole)
    assert bytes_needed(whole + b"more") == len(whole)


def test_the_longest_message() -> None:
    bytes_needed(in_records(message_of(MOST_BYTES), 16_384))
    with pytest.raises(NotAHello):
        bytes_needed(in_records(message_of(MOST_BYTES + 1), 16_384)[:9])

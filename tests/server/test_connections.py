"""Connections that are of no use to anybody are closed, and there are never too many of them."""

import gc
import logging
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from select import select

import httpx
import pytest

from duequeue.contract.phrases import PATIENCE, in_background
from duequeue.contract.stage import until
from duequeue.server import app_for, running
from duequeue.server.connections import Connections, CountedProtocol, address_of
from duequeue.server.limits import Limits
from tests.server.attacks import HEAD, MEGABYTE, ask, connect, received, status
from tests.server.command import ServeProcess, serving
from tests.server.served import Served, served

OK, UNAUTHORIZED, TOO_LARGE, TOO_MANY, BUSY = 200, 401, 413, 429, 503
HASTY = Limits(linger_seconds=0.05, body_seconds=0.2)
# An answer to each of these comes before the rest of the request.
UNFINISHED = {
    "length": HEAD + b"Content-Length: 1000000\r\n\r\n",
    "chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
    "no token": b"POST /v1/queues/q/messages HTTP/1.1\r\nHost: due.example\r\n"
    b"Content-Length: 1000000\r\n\r\n",
    "continue": HEAD + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
    "pipelined": HEAD + b"\r\n" + HEAD + b"Content-Length: 1000000\r\n\r\n",
}


@pytest.fixture(scope="module")
def hasty() -> Iterator[Served]:
    """A server that closes such a connection at once."""
    with served(app_for("memory:hasty", limits=HASTY)) as server:
        yield server


def answered(connection: socket.socket) -> bytes:
    """Return what has come as soon as something has."""
    return connection.recv(65536)


def open_at(server: Served) -> int:
    return len(server._server.server_state.connections)  # noqa: SLF001


@pytest.mark.parametrize("request_", UNFINISHED.values(), ids=UNFINISHED)
@pytest.mark.parametrize("more", [b"", b"x", b"x" * 100_000])
def test_a_connection_ends_whose_answer_came_before_its_request(
    hasty: Served, request_: bytes, more: bytes
) -> None:
    with connect(hasty.port) as connection:
        connection.sendall(request_)
        connection.sendall(more)
        answer = received(connection)
        assert b"connection: close" in answer
        until(lambda: open_at(hasty) == 0)  # although this end is open


def test_line_breaks_do_not_keep_a_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "KEEP_ALIVE_SECONDS", 0.2)
    with served(app_for("memory:idle")) as server, connect(server.port) as connection:
        connection.sendall(HEAD + b"\r\n")
        assert status(answered(connection)) == OK
        connection.sendall(b"\r\n")
        assert received(connection) == b""


def test_an_answer_reaches_a_client_that_is_still_sending(tmp_path: Path) -> None:
    service = app_for("memory:early", token_file=tmp_path / "none.json")
    with served(service) as server, server.client() as http:
        for _ in range(3):
            answer = http.post("/v1/queues/q/messages", content=b"x" * 16 * MEGABYTE)
            assert answer.status_code == UNAUTHORIZED
            assert answer.headers["connection"] == "close"


def test_a_request_that_was_read_leaves_its_connection_open(http: httpx.Client, path: str) -> None:
    for _ in range(2):
        answer = http.put(f"{path}/messages/a", content=b"1" * 500_000)
        assert "connection" not in answer.headers


@pytest.mark.skipif(sys.platform != "linux", reason="only there, all of 127.0.0.0/8 is local")
def test_connections_are_limited_in_all_and_per_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = Limits(connections=5, connections_per_address=3)
    with served(app_for("memory:full", limits=limits)) as server, ExitStack() as stack:
        many = [stack.enter_context(connect(server.port)) for _ in range(4)]
        (refused,) = one_readable(many)
        assert status(received(refused)) == TOO_MANY
        others = [stack.enter_context(connect(server.port, "127.0.0.2")) for _ in range(3)]
        (refused,) = one_readable(others)
        assert status(received(refused)) == BUSY
        records = [each for each in caplog.records if each.name == "duequeue.server"]
        assert [each.levelno for each in records] == [logging.WARNING]  # once a minute
        assert "127.0.0.1" in records[0].getMessage()
        many[0].close()
        others[0].close()
        until(lambda: status(ask(server.port)) == OK)


def one_readable(connections: list[socket.socket]) -> list[socket.socket]:
    until(lambda: bool(select(connections, [], [], 0)[0]))
    return select(connections, [], [], 0)[0]


def test_a_process_with_few_files_takes_fewer_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (80, 80))
    counted = Connections(Limits())
    assert (counted._most, counted._most_per_address) == (60, 50)  # noqa: SLF001
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert Connections(Limits())._most == Limits().connections  # noqa: SLF001


def test_who_counts_as_one_client() -> None:
    addresses = ["10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "2001:db8::2", "fe80::1%eth0"]
    counted = [address_of((each, 1)) for each in addresses]
    assert counted == ["10.0.0.1", "::ffff:a00:1", "2001:db8::", "2001:db8::", "fe80::"]
    assert address_of(None) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux changes limits of others")
def test_a_server_without_files_says_so_and_recovers(tmp_path: Path) -> None:
    with serving("--no-push", folder=tmp_path) as server:
        assert status(ask(server.port)) == OK
        before = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (1, before[1]))
        assert said(server, "no file can be opened")
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, before)
        assert said(server, "files can be opened again")
        assert status(ask(server.port)) == OK


def said(server: ServeProcess, words: str) -> bool:
    """Wait until a line of the log has these words."""
    lines = server.process.stdout
    assert lines is not None
    return in_background(lambda: any(words in line for line in lines)).result(PATIENCE)


@pytest.mark.parametrize(
    "request_",
    [
        HEAD + b"Connection: close\r\n\r\n",
        UNFINISHED["length"] + b"x",
        b"GET /" + b"x" * 10_000,
        HEAD + b"a: b\r\n" * 300,
        b"not HTTP at all\r\n\r\n",
    ],
    ids=["answered", "unfinished", "long url", "many fields", "not HTTP"],
)
def test_a_closed_connection_leaves_no_garbage(hasty: Served, request_: bytes) -> None:
    """A server collects garbage seldom, so what has come must not be held by a cycle."""
    until(lambda: open_at(hasty) == 0)
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            with connect(hasty.port) as connection:
                connection.sendall(request_)
                received(connection)
        until(lambda: not any(is_of_hasty(each) for each in gc.get_objects()))
    finally:
        gc.enable()


def is_of_hasty(thing: object) -> bool:
    """Return whether this belongs to a connection of that server; others are open meanwhile."""
    # Objects of other tests may compute their `__class__`, which isinstance would ask for.
    return issubclass(type(thing), CountedProtocol) and thing.limits is HASTY  # type: ignore[attr-defined]

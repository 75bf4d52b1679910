"""Heads without an end, which a client without a token can send too."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from select import select

import httpx
import msgspec
import pytest

from duequeue.contract.stage import until
from duequeue.server import app_for
from duequeue.server.heads import MOST_PIPELINED, PART_BYTES
from duequeue.server.limits import Limits
from duequeue.server.problems import CONTENT_TYPE
from tests.server.attacks import (
    ENDLESS,
    HEAD,
    MEGABYTE,
    UPLOAD,
    Memory,
    ask,
    attack,
    connect,
    received,
    status,
)
from tests.server.command import ServeProcess, serving
from tests.server.served import Served, served
from tests.server.test_security import raw, request

LIMITS = Limits()
OK, MALFORMED, NOT_FOUND, URL_TOO_LONG, HEAD_TOO_LARGE, BUSY = 200, 400, 404, 414, 431, 503
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    with serving("--dev", "--no-push", folder=tmp_path_factory.mktemp("heads")) as running:
        assert status(ask(running.port)) == OK
        yield running


@on_linux
@pytest.mark.parametrize("name", ENDLESS)
def test_a_head_without_an_end_is_refused(process: ServeProcess, name: str) -> None:
    memory = Memory(process)
    attacked = attack(process.port, *ENDLESS[name])
    assert attacked.sent < 16 * MEGABYTE  # most of it is in buffers of the system
    refusal = URL_TOO_LONG if name in {"url", "query"} else HEAD_TOO_LARGE
    assert status(attacked.answer) == refusal
    assert status(ask(process.port)) == OK
    assert memory.growth() < 10 * MEGABYTE


@on_linux
def test_requests_without_an_end_are_not_collected(process: ServeProcess) -> None:
    """One connection sends requests faster than they are answered, and reads no answer."""
    memory = Memory(process)
    attacked = attack(process.port, b"", (HEAD + b"\r\n") * 1500)
    assert attacked.sent < 16 * MEGABYTE
    assert status(ask(process.port)) == OK
    assert memory.growth() < 10 * MEGABYTE


def test_unfinished_heads_are_limited_together() -> None:
    limits = Limits(unfinished_heads_bytes=10 * LIMITS.head_bytes, head_seconds=600)
    begun = HEAD + b"a: " + b"x" * (LIMITS.head_bytes - len(HEAD) - 3)
    with served(app_for("memory:heads", limits=limits)) as server, ExitStack() as stack:
        connections = [stack.enter_context(connect(server.port)) for _ in range(15)]
        for each in connections:
            each.sendall(begun)
        until(lambda: len(select(connections, [], [], 0)[0]) == 5)
        for each in select(connections, [], [], 0)[0]:
            assert status(received(each)) == BUSY
        assert status(ask(server.port)) == OK  # a head that comes at once is never unfinished
        stack.close()
        until(lambda: _is_accepted(server.port, begun))


def _is_accepted(port: int, begun: bytes) -> bool:
    """Return whether the server waits for the rest of a head."""
    with connect(port) as connection:
        connection.sendall(begun)
        assert status(ask(port)) == OK  # and so it has read the beginning before the rest comes
        with suppress(ConnectionError):
            connection.sendall(b"\r\nConnection: close\r\n\r\n")
        return status(received(connection)) == OK


def test_a_refusal_is_a_problem_document(server: Served) -> None:
    long = b"X-Long: " + b"x" * (LIMITS.head_bytes + 2 * PART_BYTES)
    for target, field, expected in (
        (b"/healthz", long, HEAD_TOO_LARGE),
        (b"/" + b"x" * LIMITS.url_bytes, b"X: y", URL_TOO_LONG),
        (b"/healthz", b"Host: another", MALFORMED),
        (b"/healthz", b"no field", MALFORMED),
    ):
        head, _, body = raw(server, request(target, field)).partition(b"\r\n\r\n")
        assert status(head) == expected
        assert b"content-type: " + CONTENT_TYPE in head
        assert b"connection: close" in head
        problem = msgspec.json.decode(body)
        assert problem["status"] == expected
        assert problem["request_id"]
        assert problem["detail"]


def test_a_head_of_the_largest_size_is_answered(http: httpx.Client) -> None:
    fields = {f"X-{number}": "x" * 150 for number in range(LIMITS.head_fields - 10)}
    assert http.get("/healthz", headers=fields).status_code == OK
    longest = "x" * (LIMITS.head_bytes - 1000)
    assert http.get("/healthz", headers={"X-Long": longest}).status_code == OK
    too_many = {f"X-{number}": "x" for number in range(LIMITS.head_fields + 1)}
    assert http.get("/healthz", headers=too_many).status_code == HEAD_TOO_LARGE


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"GET /healthz HTTP/1.1\r\n\r\n", MALFORMED),
        (b"GET /healthz HTTP/1.0\r\n\r\n", OK),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", MALFORMED),
        (b"not HTTP at all\r\n\r\n", MALFORMED),
    ],
)
def test_a_request_names_its_host_once(server: Served, head: bytes, expected: int) -> None:
    if expected == OK:
        assert status(raw(server, head)) == OK
        return
    answer = raw(server, head)
    assert status(answer) == expected
    assert CONTENT_TYPE in answer


def test_trailers_are_not_headers(server: Served) -> None:
    """What came before the body decides; a proxy has checked that, and not what comes after it."""
    upload = UPLOAD.replace(b"/q/", b"/trailers/").replace(b"\r\n\r\n", b"\r\n")
    answer = raw(
        server,
        upload
        + b"Connection: close\r\nX-Request-Id: head\r\n\r\n"
        + b'c\r\n{"key": "a"}\r\n0\r\nX-Request-Id: trailer\r\nContent-Type: text/plain\r\n\r\n',
    )
    assert status(answer) == OK
    assert b"x-request-id: head" in answer


def test_some_requests_may_be_pipelined(server: Served) -> None:
    many = MOST_PIPELINED
    last = HEAD + b"Connection: close\r\n\r\n"
    assert raw(server, (HEAD + b"\r\n") * many + last).count(b"HTTP/1.1 200 OK") == many + 1


def test_another_protocol_is_not_offered(server: Served) -> None:
    """An answer to a request that asks for another protocol is the last one on its connection."""
    upgrade = HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    answer = raw(server, upgrade + HEAD + b"\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") == 1
    assert b"connection: close" in answer


def test_a_body_is_not_dropped_with_another_protocol(server: Served, path: str) -> None:
    """The parser would skip the body, and the message would have no payload."""
    fields = (b"Connection: Upgrade, close", b"Upgrade: h2c", b"Content-Length: 3")
    target = f"{path}/messages/a".encode()
    put = request(target, *fields, method=b"PUT", body=b'"a"')
    answer = raw(server, put.replace(b"Connection: close\r\n", b""))
    assert status(answer) == MALFORMED
    assert b"Upgrade" in answer
    assert status(raw(server, request(target))) == NOT_FOUND

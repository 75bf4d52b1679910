"""Who may call, and what a hostile client cannot do."""

import hmac
import logging
import re
import socket
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from msgspec.structs import replace

from duequeue import Queue
from duequeue.contract.stage import until
from duequeue.errors import StoreError
from duequeue.server import Limits, app_for
from duequeue.server.tokens import READ_AGAIN_SECONDS, Scope, TokenFile, new_token
from tests.server.served import PATIENCE, MovableTime, Served, guarded_service, served

LIMITS = Limits(body_bytes=100_000)
IMPATIENT = Limits(head_seconds=0.5, body_seconds=0.5)


class Guarded(NamedTuple):
    server: Served
    tokens: TokenFile
    time: MovableTime


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    file, time = TokenFile(tmp_path_factory.mktemp("tokens") / "tokens.json"), MovableTime()
    with served(guarded_service("memory:guarded", TokenFile(file.path, time), LIMITS)) as server:
        yield Guarded(server, file, time)


@pytest.fixture
def impatient() -> Iterator[Served]:
    """A server that waits half a second for the rest of a request."""
    with served(app_for("memory:impatient", limits=IMPATIENT)) as server:
        yield server


def token_for(guarded: Guarded, *scopes: Scope, prefix: str = "", **more: Any) -> str:
    token, grant = new_token(scopes, datetime.now(UTC), prefix=prefix, **more)
    guarded.tokens.add(grant)
    look_again(guarded)
    return token


def look_again(guarded: Guarded) -> None:
    """Have the server look at the file, which it does once a second."""
    guarded.time.ahead += READ_AGAIN_SECONDS


REQUESTS: dict[Scope, list[tuple[str, str, Any]]] = {
    Scope.OFFER: [
        ("POST", "/messages", {"key": "a"}),
        ("PUT", "/messages/a", None),
        ("DELETE", "/messages/a", None),
        ("PATCH", "/messages/a", {"delay": 1}),
        ("POST", "/messages/a:run-now", None),
    ],
    Scope.POLL: [("POST", ":poll", {})],
    Scope.SETTLE: [("POST", ":settle", {})],
    Scope.READ: [
        ("GET", "", None),
        ("GET", "/messages", None),
        ("GET", "/messages/a", None),
        ("GET", "/buried", None),
        ("GET", "/forecast", None),
        ("GET", "/history", None),
    ],
    Scope.ADMIN: [
        ("DELETE", "/messages?confirm=orders", None),
        ("POST", "/buried:revive", {"keys": []}),
        ("POST", "/buried:purge", {"ids": []}),
    ],
}


@pytest.mark.parametrize("scope", Scope)
def test_a_scope_allows_its_requests_and_no_others(guarded: Guarded, scope: Scope) -> None:
    token = token_for(guarded, scope, prefix="orders")
    with guarded.server.client(token) as http:
        for needed, requests in REQUESTS.items():
            for method, place, body in requests:
                answer = http.request(method, f"/v1/queues/orders{place}", json=body)
                is_allowed = scope in (needed, Scope.ADMIN)
                assert (answer.status_code != 403) == is_allowed, (method, place)
                other = http.request(method, f"/v1/queues/others{place}", json=body)
                assert other.status_code == 403


def test_a_settle_inside_a_poll_needs_its_scope(guarded: Guarded) -> None:
    with guarded.server.client(token_for(guarded, Scope.POLL)) as http:
        answer = http.post("/v1/queues/q:poll", json={"settle": {"ack": []}})
        assert answer.status_code == 403


def test_crons_and_the_clock_need_admin(guarded: Guarded) -> None:
    everything_else = [scope for scope in Scope if scope is not Scope.ADMIN]
    with guarded.server.client(token_for(guarded, *everything_else)) as http:
        body = {"queue": "q", "every": "1h"}
        assert http.put("/v1/crons/c", json=body).status_code == 403
        assert http.post("/v1/clock:advance", json={"by": 1}).status_code == 403
        assert http.get("/metrics").status_code == 200
    with guarded.server.client(token_for(guarded, Scope.ADMIN, prefix="q")) as http:
        assert http.put("/v1/crons/c", json=body).status_code == 200
        assert http.delete("/v1/crons/c").status_code == 200
        assert http.get("/metrics").status_code == 403
        assert http.post("/v1/clock:advance", json={"by": 1}).status_code == 403


def test_lists_show_only_what_the_prefix_allows(guarded: Guarded) -> None:
    with guarded.server.client(token_for(guarded, Scope.ADMIN)) as http:
        for queue in ("mine-1", "yours-1"):
            http.put(f"/v1/queues/{queue}/messages/a")
            http.put("/v1/crons/c", json={"queue": queue, "every": "1h"})
        operation = http.delete("/v1/queues/yours-1/messages?key_prefix=a").json()["id"]
    with guarded.server.client(token_for(guarded, Scope.ADMIN, prefix="mine")) as http:
        assert {each["name"] for each in http.get("/v1/queues").json()["queues"]} == {"mine-1"}
        assert {each["queue"] for each in http.get("/v1/crons").json()["crons"]} == {"mine-1"}
        assert http.get("/v1/crons/c").json()["queue"] == "mine-1"
        assert http.get("/v1/crons/c?queue=yours-1").status_code == 403
        assert http.get("/v1/operations").json()["operations"] == []
        assert http.get(f"/v1/operations/{operation}").status_code == 404


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer x",
        "Basic YTpi",
        "Bearer dq_000000000000_" + "x" * 43,
        "Bearer dq_" + "x" * 10_000,
        "Bearer \xff",
    ],
)
def test_no_valid_token(guarded: Guarded, header: str | None) -> None:
    headers = {} if header is None else {b"Authorization": header.encode("latin-1")}
    with guarded.server.client() as http:
        answer = http.get("/v1/queues/q", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "xxx" not in answer.text


def test_an_altered_token_is_refused(guarded: Guarded) -> None:
    token = token_for(guarded, Scope.ADMIN)
    with guarded.server.client(token[:-1] + ("a" if token[-1] != "a" else "b")) as http:
        assert http.get("/v1/queues/q").status_code == 401


def test_expired_and_revoked_tokens_are_refused(guarded: Guarded) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    with guarded.server.client(token_for(guarded, Scope.ADMIN, expires_at=past)) as http:
        answer = http.get("/v1/queues/q")
        assert (answer.status_code, "expired" in answer.json()["detail"]) == (401, True)
    token = token_for(guarded, Scope.ADMIN)
    with guarded.server.client(token) as http:
        assert http.get("/v1/queues/q").status_code == 200
        assert guarded.tokens.revoke(token.split("_")[1])
        token_for(guarded, Scope.READ)
        assert http.get("/v1/queues/q").status_code == 401


@pytest.mark.parametrize("ends", ["revoked", "expired", "widened"])
@pytest.mark.parametrize(
    "waits",
    [
        pytest.param(lambda http: http.post("/v1/queues/left:poll", json={"wait": 60}), id="poll"),
        pytest.param(lambda http: http.get("/v1/queues/left/responses/a?wait=60s"), id="response"),
    ],
)
def test_a_request_that_waits_ends_with_its_token(guarded: Guarded, ends: str, waits: Any) -> None:
    live = guarded.server.service.live
    token = token_for(guarded, Scope.POLL, Scope.OFFER, Scope.READ)
    with guarded.server.client(token) as http, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waits, http)
        until(lambda: live.waiters == 1)
        end_token(guarded, token.split("_")[1], ends)
        answer = waiting.result(PATIENCE)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert live.waiters == 0


def test_a_request_that_waits_ends_when_its_token_expires(guarded: Guarded) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=2)
    token = token_for(guarded, Scope.POLL, expires_at=soon)
    with guarded.server.client(token) as http:
        assert http.post("/v1/queues/expires:poll", json={"wait": 60}).status_code == 401


def end_token(guarded: Guarded, identity: str, how: str) -> None:
    """Revoke a token, or replace it by one under its id that has expired or allows other things."""
    (grant,) = [each for each in guarded.tokens.grants() if each.id == identity]
    assert guarded.tokens.revoke(identity)
    if how == "expired":
        guarded.tokens.add(replace(grant, expires_at=datetime.now(UTC) - timedelta(seconds=1)))
    elif how == "widened":
        guarded.tokens.add(replace(grant, prefix="other"))


@pytest.mark.parametrize("exists", [True, False], ids=["a queue", "a queue to come"])
def test_a_message_does_not_go_to_a_token_that_was_revoked_meanwhile(
    guarded: Guarded, exists: bool
) -> None:
    """The message wakes the request before the server has looked at the tokens again."""
    live = guarded.server.service.live
    token = token_for(guarded, Scope.POLL)
    with (
        guarded.server.client(token) as http,
        guarded.server.client(token_for(guarded, Scope.ADMIN)) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        if exists:
            other.put("/v1/queues/late/messages/first")
            other.delete("/v1/queues/late/messages/first")
        waiting = pool.submit(http.post, "/v1/queues/late:poll", json={"wait": 60})
        until(lambda: live.waiters == 1)
        guarded.tokens.revoke(token.split("_")[1])
        look_again(guarded)
        other.put("/v1/queues/late/messages/a")
        assert waiting.result(PATIENCE).status_code == 401
        (found,) = other.post("/v1/queues/late:poll", json={}).json()["deliveries"]
        assert (found["key"], found["attempt"]) == ("a", 1)


def test_a_python_client_stops_waiting_when_its_token_is_revoked(guarded: Guarded) -> None:
    live = guarded.server.service.live
    token = token_for(guarded, Scope.POLL, Scope.OFFER)
    with (
        Queue.open(guarded.server.url, "left", token=token) as queue,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(queue.poll, timedelta(minutes=1))
        until(lambda: live.waiters > 0)
        guarded.tokens.revoke(token.split("_")[1])
        with pytest.raises(StoreError, match="401"):
            waiting.result(PATIENCE)
    assert live.waiters == 0


def test_the_file_has_hashes_and_belongs_to_its_owner(guarded: Guarded) -> None:
    token = token_for(guarded, Scope.READ)
    text = guarded.tokens.path.read_text()
    assert token.split("_", 2)[2] not in text
    assert token.split("_")[1] in text
    assert stat.S_IMODE(guarded.tokens.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", ["text", "folder"])
def test_a_token_file_that_cannot_be_read_lets_nobody_in(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    file, time = TokenFile(tmp_path / "tokens.json"), MovableTime()
    with served(guarded_service("memory:damaged", TokenFile(file.path, time))) as server:
        guarded = Guarded(server, file, time)
        token = token_for(guarded, Scope.READ)
        with server.client(token) as http:
            assert http.get("/v1/queues").status_code == 200
            whole = file.path.read_bytes()
            file.path.unlink()
            if damage == "text":
                file.path.write_text("not tokens")
            else:
                file.path.mkdir()
            look_again(guarded)
            for _ in range(2):  # the second request does not look at the file
                answer = http.get("/v1/queues")
                assert answer.status_code == 503
                assert str(tmp_path) not in answer.text
            assert str(file.path) in caplog.text
            file.path.unlink() if damage == "text" else file.path.rmdir()
            file.path.write_bytes(whole)
            look_again(guarded)
            assert http.get("/v1/queues").status_code == 200


def test_reading_creates_no_queue(guarded: Guarded) -> None:
    name = "never-offered"
    reader = token_for(guarded, Scope.READ, Scope.SETTLE)
    with guarded.server.client(reader) as http:
        path = f"/v1/queues/{name}"
        assert http.get(path).json()["total"] == 0
        assert http.get(f"{path}/messages").json()["messages"] == []
        assert http.get(f"{path}/messages/a").status_code == 404
        assert http.get(f"{path}/buried").json()["messages"] == []
        assert http.get(f"{path}/forecast").json()["buckets"] == []
        assert http.get(f"{path}/history").json()["messages"] == []
        assert http.post(f"{path}:settle", json={}).json() == {"settled": {}}
        assert http.get("/v1/queues/" + "q" * 201).status_code == 422
    with Queue.open(guarded.server.url, name, token=reader) as queue:
        assert queue.stats().total == 0
        assert queue.read("a") is None
        with guarded.server.client(token_for(guarded, Scope.ADMIN)) as http:
            assert http.post(f"{path}:poll", json={}).json()["deliveries"] == []
            assert http.delete(path + "/messages", params={"confirm": name}).json()["dropped"] == 0
            assert name not in http.get("/v1/queues").text
            http.put(f"{path}/messages/a", content=b"1")
            assert name in http.get("/v1/queues").text
        assert queue.stats().total == 1


def test_a_worker_may_wait_before_there_is_a_queue(guarded: Guarded) -> None:
    worker = token_for(guarded, Scope.POLL)
    path = "/v1/queues/first-comes-the-worker"
    with (
        guarded.server.client(worker) as http,
        guarded.server.client(token_for(guarded, Scope.OFFER)) as producer,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(http.post, f"{path}:poll", json={"wait": "20s"})
        until(lambda: guarded.server.service.live.waiters == 1)
        producer.put(f"{path}/messages/a", content=b"1")
        assert len(waiting.result().json()["deliveries"]) == 1


def test_health_needs_no_token(guarded: Guarded) -> None:
    with guarded.server.client() as http:
        for place in ("/healthz", "/readyz", "/v1/limits", "/openapi.json"):
            assert http.get(place).status_code == 200
        assert http.get("/metrics").status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "http://127.0.0.1"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_without_tokens_a_web_page_cannot_call(http: httpx.Client, path: str, headers: Any) -> None:
    assert http.get("/v1/queues", headers=headers).status_code == 403
    assert http.put(f"{path}/messages/a", headers=headers).status_code == 403


def test_without_tokens_a_page_of_the_server_itself_can_call(http: httpx.Client, path: str) -> None:
    own = str(http.base_url).rstrip("/")
    for headers in ({"Origin": own}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
        assert http.put(f"{path}/messages/a", headers=headers).status_code == 200


def test_bodies_that_are_too_long(guarded: Guarded) -> None:
    with guarded.server.client(token_for(guarded, Scope.OFFER)) as http:
        long = b'"' + b"x" * 200_000 + b'"'
        answer = http.put("/v1/queues/q/messages/a", content=long)
        assert answer.status_code == 413
        parts = (long[place : place + 50_000] for place in range(0, len(long), 50_000))
        assert http.put("/v1/queues/q/messages/a", content=parts).status_code == 413
        lines = b'{"key":"a","payload":' + long + b"}"
        headers = {"Content-Type": "application/x-ndjson"}
        answer = http.post("/v1/queues/q/messages", content=lines, headers=headers)
        assert answer.status_code == 413
        many = [{"key": "a"}] * 1001
        assert http.post("/v1/queues/q/messages", json=many).status_code == 422
        assert http.put("/v1/queues/q/messages/a").status_code == 200


def test_deep_json_is_refused(http: httpx.Client, path: str) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    assert http.put(f"{path}/messages/a", content=deep).status_code == 422
    body = b'{"key":"a","payload":' + deep + b"}"
    assert http.post(f"{path}/messages", content=body).status_code in {400, 422}


def raw(server: Served, request: bytes) -> bytes:
    """Send bytes, and return all that comes back until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(request)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def request(target: bytes, *headers: bytes, method: bytes = b"GET", body: bytes = b"") -> bytes:
    lines = [b"Host: localhost", b"Connection: close", *headers]
    return b"\r\n".join([method + b" " + target + b" HTTP/1.1", *lines, b"", body])


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"/v1/queues/q/messages/%FF", b"400"),
        (b"/v1/queues/%C3%28", b"400"),
        (b"/v1/queues/q?type=%FF", b"400"),
        (b"/v1/queues/q\xff", b"400"),
        (b"/v1/queues/q/messages/%00", b"422"),
        (b"/v1/queues/a%7Cb", b"422"),
        (b"/v1/queues//messages", b"422"),
        (b"/v1/queues/q/messages/", b"422"),
        (b"/v1/queues/" + b"x" * 101, b"422"),
        (b"/v1/../etc/passwd", b"404"),
        (b"/%2e%2e/%2e%2e/etc/passwd", b"404"),
        (b"//v1/queues", b"404"),
        (b"*", b"404"),
    ],
)
def test_hostile_paths(server: Served, target: bytes, status: bytes) -> None:
    assert raw(server, request(target)).split(b" ")[1] == status


def test_a_request_id_cannot_bring_in_a_header(server: Served) -> None:
    hostile = b"X-Request-Id: a%0d%0aSet-Cookie: x=1"
    answer = raw(server, request(b"/v1/queues", hostile)).partition(b"\r\n\r\n")[0]
    assert b"set-cookie" not in answer.lower()
    assert re.search(rb"x-request-id: [0-9a-f]{16}\r\n", answer)


def test_message_headers_cannot_bring_in_a_header(http: httpx.Client, path: str) -> None:
    body = {"key": "a", "headers": {"x": "1\r\nSet-Cookie: y"}}
    assert http.post(f"{path}/messages", json=body).status_code == 200
    answer = http.get(f"{path}/messages/a")
    assert "set-cookie" not in answer.headers
    assert answer.json()["headers"] == body["headers"]


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET /v1/queues HTTP/1.1\r\nHost: loc",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea",
    ],
)
def test_a_head_that_does_not_end_is_given_up(impatient: Served, begun: bytes) -> None:
    raw(impatient, begun)  # returns when the server closes the connection


def test_an_answer_that_is_not_read_is_given_up() -> None:
    limits = Limits(answer_seconds=0.1)
    with served(app_for("memory:unread", limits=limits)) as server, server.client() as http:
        path, payload = "/v1/queues/q/messages/a", b'"' + b"x" * 8_000_000 + b'"'
        assert http.put(path, content=payload).status_code == 200
        http.close()
        until(lambda: server.connections == 0)
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as slow:
            slow.sendall(request(path.encode()))
            until(lambda: server.connections == 1)
            until(lambda: server.connections == 0)
            assert len(b"".join(iter(lambda: received(slow), b""))) < len(payload)


def received(connection: socket.socket) -> bytes:
    """Return the next bytes; none if the other side has closed or reset the connection."""
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


def test_requests_are_not_limited_in_number(guarded: Guarded) -> None:
    with guarded.server.client(token_for(guarded, Scope.READ)) as http:
        assert {http.get("/v1/queues").status_code for _ in range(200)} == {200}


def test_every_token_is_compared_by_its_whole_hash(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`compare_digest` takes the same time for equal and different texts, also for unknown ids."""
    compared: list[tuple[str, str]] = []
    compare = hmac.compare_digest

    def counted(given: str, stored: str) -> bool:
        compared.append((given, stored))
        return compare(given, stored)

    token = token_for(guarded, Scope.READ)
    monkeypatch.setattr("hmac.compare_digest", counted)
    for each in (token, token[:-1] + ("a" if token[-1] != "a" else "b"), "dq_" + "0" * 12, "dq"):
        with guarded.server.client(each) as http:
            http.get("/v1/queues")
    assert len(compared) == 4
    assert {len(text) for pair in compared for text in pair} == {64}


def test_the_access_log_has_the_keys(
    server: Served, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "uvicorn.access"), server.client() as http:
        http.put(f"/v1/queues/{name}/messages/my-key")
    assert f"/v1/queues/{name}/messages/my-key" in caplog.text


def test_a_body_that_does_not_end_is_given_up(impatient: Served) -> None:
    begun = request(b"/v1/queues/q/messages/a", b"Content-Length: 9", method=b"PUT", body=b"1")
    assert b" 408 " in raw(impatient, begun).partition(b"\r\n")[0]


def test_neither_payloads_nor_tokens_are_logged(
    guarded: Guarded, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    token = token_for(guarded, Scope.ADMIN)
    with caplog.at_level(logging.DEBUG), guarded.server.client(token) as http:
        http.post("/v1/queues/q/messages", json={"key": "a", "payload": "my-secret"})
        http.put("/v1/queues/q/messages/b", content=b'"my-secret')
        http.put("/v1/queues/q/messages/c", content=b'"my-secret"')
        http.post("/v1/queues/q:poll", json={"limit": 5})
        http.get("/v1/queues/q/messages/b", headers={"Authorization": f"Bearer {token}x"})
    ours = [each for each in caplog.records if not each.name.startswith(("httpx", "httpcore"))]
    logged = "\n".join(each.getMessage() for each in ours)
    assert "my-secret" not in logged
    assert token.split("_", 2)[2] not in logged

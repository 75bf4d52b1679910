"""Responses over HTTP: waiting for them, and answering a delivery."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from duequeue import BytesCodec, Queue
from duequeue.contract.phrases import PATIENCE, in_background
from duequeue.contract.stage import until
from duequeue.errors import StoreError
from duequeue.server import app_for
from duequeue.server.tokens import Scope, TokenFile, new_token
from tests.server.served import Served, served

DAY = timedelta(days=1)


def take(http: httpx.Client, path: str) -> dict[str, Any]:
    (found,) = http.post(f"{path}:poll", json={"wait": 20}).json()["deliveries"]
    return dict(found)


def test_a_response_is_there_for_all_who_ask(http: httpx.Client, path: str) -> None:
    http.put(f"{path}/messages/a")
    token = take(http, path)["token"]
    answer = {"response": [{"token": token, "value": {"sum": 3}, "keep": "10m"}]}
    assert http.post(f"{path}:settle", json=answer).json() == {"settled": {token: "won"}}
    assert http.post(f"{path}:settle", json=answer).json() == {"settled": {token: "lost"}}
    for _ in range(2):
        found = http.get(f"{path}/responses/a").json()
        assert (found["key"], found["value"]) == ("a", {"sum": 3})
        assert datetime.fromisoformat(found["responded_at"]) <= datetime.now(UTC)
    assert http.delete(f"{path}/responses/a").json() == {"changed": True}
    assert http.delete(f"{path}/responses/a").json() == {"changed": False}
    assert http.get(f"{path}/responses/a").status_code == 404


def test_one_who_waits_is_woken(server: Served, http: httpx.Client, path: str) -> None:
    http.put(f"{path}/messages/a")
    token = take(http, path)["token"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: http.get(f"{path}/responses/a?wait=20s"))
        until(lambda: server.service.live.waiters == 1)
        http.post(f"{path}:settle", json={"response": [{"token": token, "value": 7}]})
        assert waiting.result().json()["value"] == 7


def test_one_may_wait_before_the_queue_exists(
    server: Served, http: httpx.Client, path: str
) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: http.get(f"{path}/responses/a?wait=20s"))
        until(lambda: server.service.live.waiters == 1)
        http.put(f"{path}/messages/a")
        token = take(http, path)["token"]
        http.post(f"{path}:settle", json={"response": [{"token": token, "value": 7}]})
        assert waiting.result().json()["value"] == 7


def test_without_a_response_in_time_there_is_a_problem(http: httpx.Client, path: str) -> None:
    http.put(f"{path}/messages/a")
    for wait in ("0", "50ms"):
        answer = http.get(f"{path}/responses/a", params={"wait": wait})
        assert answer.status_code == 404
        assert answer.json()["type"] == "urn:duequeue:no-response"
    refused = http.get(f"{path}/responses/a?wait=1h")
    assert (refused.status_code, refused.json()["argument"]) == (422, "wait")


@pytest.mark.parametrize("how", ["bury", "drop"])
def test_what_was_buried_or_dropped_says_why(http: httpx.Client, path: str, how: str) -> None:
    http.put(f"{path}/messages/a")
    token = take(http, path)["token"]
    if how == "bury":
        http.post(f"{path}:settle", json={"bury": [{"token": token, "reason": "no stock"}]})
    else:
        http.delete(f"{path}/messages/a")
    answer = http.get(f"{path}/responses/a?wait=20s")
    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (409, "urn:duequeue:not-answered")
    assert problem["reason"] == ("no stock" if how == "bury" else "dropped")


def test_a_response_that_is_not_json_comes_as_base64_or_as_bytes(
    http: httpx.Client, path: str, name: str, store_of_server: str
) -> None:
    with Queue.open(store_of_server, name, response_type=BytesCodec()) as queue:
        queue.offer("a", 1)
        delivery = queue.poll(timeout=20)
        assert delivery is not None
        delivery.ack(response=b"\xff\x00")
    assert http.get(f"{path}/responses/a").json()["value_b64"] == "/wA="
    packed = http.get(f"{path}/responses/a", headers={"Accept": "application/msgpack"})
    assert msgspec.msgpack.decode(packed.content)["value"] == b"\xff\x00"


@pytest.mark.parametrize(
    "given",
    [{"token": "no"}, {"token": "{token}", "keep": -1}, {"token": "{token}", "keep": "0s"}, {}],
)
def test_bad_replies_change_nothing(http: httpx.Client, path: str, given: dict[str, Any]) -> None:
    http.put(f"{path}/messages/a")
    token = take(http, path)["token"]
    reply = {name: token if value == "{token}" else value for name, value in given.items()}
    assert http.post(f"{path}:settle", json={"response": [reply]}).status_code == 422
    assert http.post(f"{path}:settle", json={"ack": [token]}).json()["settled"][token] == "won"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[Served, dict[Scope, str]]]:
    tokens, given = TokenFile(tmp_path / "tokens.json"), {}
    for scope in Scope:
        given[scope], grant = new_token([scope], datetime.now(UTC))
        tokens.add(grant)
    soon = timedelta(milliseconds=50)
    service = app_for("memory:responses", token_file=tokens.path, poll_interval=soon)
    with served(service) as server:
        yield server, given


def test_those_who_may_offer_or_read_may_ask(guarded: tuple[Served, dict[Scope, str]]) -> None:
    server, tokens = guarded
    allowed = {Scope.OFFER, Scope.READ, Scope.ADMIN}
    for scope, token in tokens.items():
        with server.client(token) as http:
            status = http.get("/v1/queues/q/responses/a").status_code
        assert status == (404 if scope in allowed else 403), scope


def test_a_reader_may_wait_before_the_queue_exists_and_does_not_create_it(
    guarded: tuple[Served, dict[Scope, str]], path: str
) -> None:
    server, tokens = guarded
    with server.client(tokens[Scope.READ]) as reader, server.client(tokens[Scope.ADMIN]) as http:
        assert reader.get(f"{path}/responses/a?wait=100ms").status_code == 404
        assert http.get("/v1/queues").json()["queues"] == []
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(lambda: reader.get(f"{path}/responses/a?wait=20s"))
            until(lambda: server.service.live.waiters == 1)
            http.put(f"{path}/messages/a")
            token = take(http, path)["token"]
            http.post(f"{path}:settle", json={"response": [{"token": token, "value": 7}]})
            assert waiting.result().json()["value"] == 7


def test_a_reader_whose_queue_never_comes_leaves_with_the_server(
    guarded: tuple[Served, dict[Scope, str]], path: str
) -> None:
    server, tokens = guarded
    with server.client(tokens[Scope.READ]) as reader, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: reader.get(f"{path}/responses/a?wait=20s"))
        until(lambda: server.service.live.waiters == 1)
        server.call(server.service.live.drain)
        assert waiting.result().status_code == 404


def test_a_client_waits_for_a_response_before_the_queue_exists(
    guarded: tuple[Served, dict[Scope, str]], name: str
) -> None:
    server, tokens = guarded
    offers = Queue.open(server.url, name, token=tokens[Scope.OFFER])
    with offers as producer, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(producer.response, "a", timeout=20)
        until(lambda: server.service.live.waiters == 1)
        with Queue.open(server.url, name, token=tokens[Scope.ADMIN]) as worker:
            worker.offer("a", 1)
            delivery = worker.poll(timeout=20)
            assert delivery is not None
            delivery.ack(response=7)
        found = waiting.result()
        assert found is not None
        assert found.value == 7
    reads = Queue.open(server.url, name, token=tokens[Scope.READ])
    with reads as reader, pytest.raises(StoreError, match="does not allow 'offer'"):
        reader.response("a", timeout=20)


def test_a_client_that_may_only_offer_is_woken_for_responses(
    guarded: tuple[Served, dict[Scope, str]], caplog: pytest.LogCaptureFixture
) -> None:
    (server, tokens), path = guarded, "/v1/queues/q"
    offers = Queue.open(server.url, "q", poll_interval=DAY, token=tokens[Scope.OFFER])
    # A worker in Python would wake its own process by itself.
    with offers as producer, server.client(tokens[Scope.ADMIN]) as worker:
        for number in range(3):
            producer.offer("a", number)
            waiting = in_background(lambda: producer.response("a"))
            until(lambda: server.service.live.waiters == 1)
            delivery = take(worker, path)
            other = worker.put(f"{path}/messages/other-{number}?delay=1d")
            assert other.status_code == 200  # but nothing for a client that may not poll
            answer = {"response": [{"token": delivery["token"], "value": number}]}
            assert worker.post(f"{path}:settle", json=answer).status_code == 200
            found = waiting.result(PATIENCE)
            assert found is not None
            assert found.value == number
    assert "no wake-ups" not in caplog.text

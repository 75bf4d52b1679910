"""Queues that do not exist: who makes one, who waits for one, and what a misspelt one leads to."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from duequeue import Queue
from duequeue.contract.stage import until
from duequeue.errors import DueQueueError
from duequeue.server import Limits, app_for
from duequeue.server.tokens import Scope, TokenFile, new_token
from tests.server.command import serving
from tests.server.served import Served, served

OK, NOT_FOUND, NO_RESPONSE = 200, 404, 404
LONG = timedelta(hours=1)
# What a client may do with a queue, besides making an offer.
REQUESTS: dict[str, tuple[str, str, Any]] = {
    "stats": ("GET", "", None),
    "list": ("GET", "/messages", None),
    "read": ("GET", "/messages/a", None),
    "poll": ("POST", ":poll", {}),
    "waiting poll": ("POST", ":poll", {"wait": "10ms"}),
    "settle": ("POST", ":settle", {}),
    "response": ("GET", "/responses/a", None),
    "waiting for a response": ("GET", "/responses/a?wait=10ms", None),
    "drop": ("DELETE", "/messages/a", None),
    "reschedule": ("PATCH", "/messages/a", {"delay": 1}),
    "run now": ("POST", "/messages/a:run-now", None),
    "buried": ("GET", "/buried", None),
    "revive": ("POST", "/buried:revive", {"keys": []}),
    "forecast": ("GET", "/forecast", None),
    "history": ("GET", "/history", None),
}
OFFERS: dict[str, tuple[str, str, Any]] = {
    "offer": ("POST", "/messages", {"key": "a"}),
    "put": ("PUT", "/messages/a", 1),
}


@pytest.fixture(scope="module")
def strict() -> Iterator[Served]:
    """A server that makes no queue, on a database that has one."""
    url = "memory:strict"
    with (
        Queue.open(url, "orders") as queue,
        served(app_for(url, create=False)) as server,
    ):
        queue.offer("a", 1, timedelta(days=1))
        yield server


def queues_of(http: httpx.Client) -> set[str]:
    return {each["name"] for each in http.get("/v1/queues").json()["queues"]}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_only_an_offer_makes_a_queue(
    http: httpx.Client, name: str, path: str, request_: tuple[str, str, Any]
) -> None:
    method, place, body = request_
    answer = http.request(method, path + place, json=body)
    assert answer.status_code in {OK, NOT_FOUND}
    assert name not in queues_of(http)
    assert http.put(f"{path}/messages/a", content=b"1").status_code == OK
    assert name in queues_of(http)


@pytest.mark.parametrize("request_", (REQUESTS | OFFERS).values(), ids=REQUESTS | OFFERS)
def test_a_server_that_makes_no_queue_says_which_is_meant(
    strict: Served, request_: tuple[str, str, Any]
) -> None:
    method, place, body = request_
    with strict.client() as http:
        answer = http.request(method, f"/v1/queues/oders{place}", json=body)
        problem = answer.json()
        assert (answer.status_code, problem["type"]) == (NOT_FOUND, "urn:duequeue:no-such-queue")
        assert "did you mean 'orders'?" in problem["detail"]
        with_type = "&type=JSON" if "?" in place else "?type=JSON"
        answer = http.request(method, f"/v1/queues/orders{place}{with_type}", json=body)
        assert (answer.status_code, answer.json()["argument"]) == (NOT_FOUND, "type")
        assert "'json'" in answer.json()["detail"]
        assert queues_of(http) == {"orders"}


def test_a_server_that_makes_no_queue_serves_what_there_is(strict: Served) -> None:
    with strict.client() as http:
        assert http.get("/v1/queues/orders").json()["future"] == 1
        assert http.put("/v1/queues/orders/messages/b", content=b"1").status_code == OK
        definition = {"queue": "reports", "every": "1h"}
        assert http.put("/v1/crons/c", json=definition).status_code == NOT_FOUND
        assert queues_of(http) == {"orders"}


def test_an_endpoint_needs_its_queue_on_a_server_that_makes_none(strict: Served) -> None:
    receiver = "https://shop.example.com/callbacks"
    with strict.client() as http:
        answer = http.put("/v1/endpoints/e", json={"queue": "oders", "url": receiver})
        assert (answer.status_code, answer.json()["argument"]) == (NOT_FOUND, "queue")
        other = {"queue": "orders", "type": "text", "url": receiver}
        answer = http.put("/v1/endpoints/e", json=other)
        assert (answer.status_code, answer.json()["argument"]) == (NOT_FOUND, "type")
        definition = {"queue": "orders", "url": receiver}
        assert http.put("/v1/endpoints/e", json=definition).status_code == OK


def test_a_client_in_python_hears_it_too(strict: Served) -> None:
    with pytest.raises(DueQueueError, match="did you mean 'orders'"):
        Queue.open(strict.url, "oders")
    with Queue.open(strict.url, "orders") as queue:
        assert queue.contains("a")


def test_a_suggestion_names_no_queue_of_others(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    token, grant = new_token([Scope.READ], datetime.now(UTC), prefix="shop-")
    tokens.add(grant)
    service = app_for("memory:tenants", token_file=tokens.path, create=False)
    with (
        Queue.open("memory:tenants", "shopping"),
        served(service) as server,
        server.client(token) as http,
    ):
        problem = http.get("/v1/queues/shop-ping").json()
        assert "shopping" not in problem["detail"]


def test_the_command_can_make_no_queues(tmp_path: Path) -> None:
    Queue.open(f"sqlite:///{tmp_path / 'duequeue.db'}", "orders").close()
    with serving("--no-create", "--no-push", folder=tmp_path) as server, server.client() as http:
        answer = http.put("/v1/queues/order/messages/a", content=b"1")
        assert answer.status_code == NOT_FOUND
        assert "did you mean 'orders'?" in answer.json()["detail"]


def test_a_client_in_python_makes_a_queue_with_its_first_offer(
    server: Served, http: httpx.Client, name: str
) -> None:
    with Queue.open(server.url, name) as queue:
        assert queue.try_poll() is None
        assert name not in queues_of(http)
        queue.offer("a", 1)
        assert name in queues_of(http)
        delivery = queue.try_poll()
        assert delivery is not None
        assert delivery.ack()


@pytest.mark.parametrize("waits", ["poll", "response", "python"])
def test_who_waits_for_a_queue_is_woken_by_its_first_offer(tmp_path: Path, waits: str) -> None:
    service = app_for(f"sqlite:///{tmp_path / 'q.db'}", poll_interval=LONG)
    with (
        served(service) as server,
        server.client() as http,
        Queue.open(server.url, "q", poll_interval=LONG) as queue,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting: Future[Any]
        if waits == "poll":
            waiting = pool.submit(http.post, "/v1/queues/q:poll", json={"wait": "20s"})
        elif waits == "response":
            waiting = pool.submit(http.get, "/v1/queues/q/responses/a?wait=20s")
        else:
            waiting = pool.submit(queue.poll, 20)
        until(lambda: service.live.waiters == 1)
        http.put("/v1/queues/q/messages/a", content=b"1")
        if waits == "response":
            until(lambda: service.live.waiters == 1)
            (found,) = http.post("/v1/queues/q:poll", json={}).json()["deliveries"]
            reply = {"token": found["token"], "value": 2}
            http.post("/v1/queues/q:settle", json={"response": [reply]})
            assert waiting.result().json()["value"] == 2
        elif waits == "poll":
            assert len(waiting.result().json()["deliveries"]) == 1
        else:
            assert waiting.result().ack()


def test_one_token_does_not_close_the_queues_of_others(tmp_path: Path) -> None:
    tokens, given = TokenFile(tmp_path / "tokens.json"), []
    for _ in range(2):
        token, grant = new_token([Scope.OFFER, Scope.ADMIN], datetime.now(UTC))
        tokens.add(grant)
        given.append(token)
    service = app_for("memory:shared", token_file=tokens.path, limits=Limits(open_queues=6))
    with (
        served(service) as server,
        server.client(given[0]) as few,
        server.client(given[1]) as many,
    ):
        few.put("/v1/queues/mine/messages/a", content=b"1")
        for number in range(20):
            many.put(f"/v1/queues/q{number}/messages/a", content=b"1")
        opened = {each.name for each in service.queues.opened}
        assert "mine" in opened
        assert len(opened) == 6
        offers = [line for line in few.get("/metrics").text.splitlines() if "offers_total{" in line]
        assert len(offers) <= 6
        assert any('queue="mine"' in line for line in offers)

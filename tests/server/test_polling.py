"""Polls and settlements over HTTP."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from duequeue import Queue
from duequeue.contract.stage import until
from duequeue.drive.actions import Flow, Listen
from duequeue.server import Limits, app_for
from duequeue.server.lookouts import Lookouts, PollFlow
from duequeue.wakeups.bell import Bell
from duequeue.wakeups.next_look import NEVER
from tests.server.served import Served, served
from tests.server.test_messages import offer


def poll(http: httpx.Client, path: str, **body: Any) -> Any:
    answer = http.post(f"{path}:poll", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def settle(http: httpx.Client, path: str, **body: Any) -> Any:
    answer = http.post(f"{path}:settle", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["settled"]


def test_an_empty_poll_is_an_empty_list(http: httpx.Client, path: str) -> None:
    assert poll(http, path) == {"deliveries": [], "settled": {}}
    assert http.post(f"{path}:poll").json()["deliveries"] == []
    assert poll(http, path, wait="10ms")["deliveries"] == []


def test_a_delivery_has_everything(http: httpx.Client, path: str) -> None:
    offer(http, path, "a", [1], due_at="2020-01-01T00:00:00.5Z", headers={"h": "v"})
    (found,) = poll(http, path, lease="30m")["deliveries"]
    assert found["key"] == "a"
    assert found["payload"] == [1]
    assert found["due_at"] == "2020-01-01T00:00:00.500Z"
    assert found["attempt"] == 1
    assert found["redelivered"] is False
    assert found["headers"] == {"h": "v"}
    lasts = datetime.fromisoformat(found["lease_until"]) - datetime.fromisoformat(
        found["delivered_at"]
    )
    assert lasts == timedelta(minutes=30)
    assert poll(http, path)["deliveries"] == []


def test_due_order_and_limit(http: httpx.Client, path: str) -> None:
    for second in (3, 1, 2):
        offer(http, path, f"k{second}", due_at=f"2020-01-01T00:00:0{second}Z")
    assert [each["key"] for each in poll(http, path, limit=2)["deliveries"]] == ["k1", "k2"]
    assert poll(http, path, limit=0)["deliveries"] == []


def test_each_token_wins_once(http: httpx.Client, path: str) -> None:
    for key in "abcd":
        offer(http, path, key)
    found = poll(http, path, limit=4)["deliveries"]
    acked, extended, released, buried = (each["token"] for each in found)
    answer = settle(
        http,
        path,
        ack=[acked],
        extend=[{"token": extended, "lease": "10m"}],
        release=[{"token": released, "delay": "1h"}],
        bury=[{"token": buried, "reason": "a bad day"}],
    )
    assert answer == dict.fromkeys([acked, extended, released, buried], "won")
    again = settle(
        http,
        path,
        ack=[acked, released],
        bury=[{"token": buried, "reason": "again"}],
        extend=[{"token": extended}],
    )
    assert again == {acked: "lost", released: "lost", buried: "lost", extended: "won"}
    stats = http.get(path).json()
    assert (stats["leased"], stats["future"], stats["buried"]) == (1, 1, 1)


def test_an_update_revokes_the_lease(http: httpx.Client, path: str) -> None:
    offer(http, path, "a", 1)
    (first,) = poll(http, path)["deliveries"]
    offer(http, path, "a", 2)
    assert settle(http, path, ack=[first["token"]]) == {first["token"]: "lost"}
    (second,) = poll(http, path)["deliveries"]
    assert second["payload"] == 2


@pytest.mark.parametrize("action", ["ack", "response", "release", "bury", "extend"])
@pytest.mark.parametrize("is_old_first", [True, False])
def test_an_old_token_loses_beside_the_one_that_holds_the_message(
    http: httpx.Client, path: str, action: str, *, is_old_first: bool
) -> None:
    offer(http, path, "a")
    (old,) = poll(http, path)["deliveries"]
    settle(http, path, release=[{"token": old["token"]}])
    (new,) = poll(http, path)["deliveries"]
    tokens = [old["token"], new["token"]] if is_old_first else [new["token"], old["token"]]
    named = tokens if action == "ack" else [{"token": token} for token in tokens]
    settled = settle(http, path, **{action: named})
    assert settled == {old["token"]: "lost", new["token"]: "won"}


def test_poll_settles_in_the_same_request(http: httpx.Client, path: str) -> None:
    offer(http, path, "a")
    offer(http, path, "b")
    (first,) = poll(http, path)["deliveries"]
    answer = poll(http, path, settle={"ack": [first["token"]]}, limit=5)
    assert answer["settled"] == {first["token"]: "won"}
    assert [each["key"] for each in answer["deliveries"]] == ["b"]


@pytest.mark.parametrize(
    ("body", "argument"),
    [
        ({"limit": 1001}, "limit"),
        ({"limit": -1}, "limit"),
        ({"wait": "61s"}, "wait"),
        ({"wait": "x"}, "wait"),
        ({"lease": 0}, "lease"),
        ({"settle": {"ack": ["x"]}}, "settle.ack[0]"),
        ({"settle": {"ack": [1]}}, "settle.ack[0]"),
    ],
)
def test_bad_polls(http: httpx.Client, path: str, body: Any, argument: str) -> None:
    answer = http.post(f"{path}:poll", json=body)
    assert answer.status_code == 422
    assert answer.json()["argument"] == argument


def test_tokens_of_another_queue_and_doubles_are_refused(http: httpx.Client, path: str) -> None:
    offer(http, path, "a")
    (found,) = poll(http, path)["deliveries"]
    token = found["token"]
    for place, body in (
        (f"{path}x", {"ack": [token]}),
        (path, {"ack": [token[:-2]]}),
        (path, {"ack": [token, token]}),
        (path, {"ack": [token], "bury": [{"token": token}]}),
        (path, {"ack": ["x"] * 1001}),
    ):
        assert http.post(f"{place}:settle", json=body).status_code == 422
    assert settle(http, path, ack=[token]) == {token: "won"}


def test_what_cannot_be_decoded_is_buried_as_in_python(
    http: httpx.Client, path: str, name: str, store_of_server: str
) -> None:
    with Queue.open(store_of_server, name, codec=NotJson()) as queue:
        queue.offer("bad", b"{")
    offer(http, path, "good")
    assert http.get(f"{path}/messages/bad").json()["payload_b64"] == "ew=="
    assert [each["key"] for each in poll(http, path, limit=9)["deliveries"]] == ["good"]
    (buried,) = http.get(f"{path}/buried").json()["messages"]
    assert buried["payload_b64"] == "ew=="
    assert "undecodable" in buried["reason"]


class NotJson:
    type_name = "json"

    def encode(self, value: bytes, /) -> bytes:
        return value

    def decode(self, data: bytes, /) -> bytes:
        return data


def test_a_waiting_poll_gets_the_message_when_it_is_offered(
    server: Served, http: httpx.Client, path: str
) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: poll(http, path, wait=20))
        until(lambda: server.service.live.waiters == 1)
        offer(http, path, "a")
        assert waiting.result()["deliveries"][0]["key"] == "a"
    assert server.service.live.waiters == 0


def test_a_waiting_poll_sleeps_until_the_message_is_due(http: httpx.Client, path: str) -> None:
    offer(http, path, "a", delay="400ms")
    # This is longer than the client waits for an answer.
    (found,) = poll(http, path, wait="60s")["deliveries"]
    due, delivered = (datetime.fromisoformat(found[each]) for each in ("due_at", "delivered_at"))
    assert delivered >= due


def test_another_process_wakes_a_waiting_poll(
    server: Served, http: httpx.Client, path: str, name: str, store_of_server: str
) -> None:
    with ThreadPoolExecutor(1) as pool, Queue.open(store_of_server, name) as queue:
        waiting = pool.submit(lambda: poll(http, path, wait=20))
        until(lambda: server.service.live.waiters == 1)
        queue.offer("a", 1)
        assert waiting.result()["deliveries"][0]["key"] == "a"


def test_prefer_wait(server: Served, http: httpx.Client, path: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(
            lambda: http.post(f"{path}:poll", headers={"Prefer": "wait=20"}).json()
        )
        until(lambda: server.service.live.waiters == 1)
        offer(http, path, "a")
        assert waiting.result()["deliveries"][0]["key"] == "a"


def test_many_wait_and_each_gets_one(server: Served, path: str) -> None:
    barrier = threading.Barrier(41)

    def wait_for_one() -> str:
        with server.client() as client:
            barrier.wait()
            return str(poll(client, path, wait=20)["deliveries"][0]["key"])

    with ThreadPoolExecutor(40) as pool, server.client() as client:
        waiting = [pool.submit(wait_for_one) for _ in range(40)]
        barrier.wait()
        until(lambda: server.service.live.waiters == 40)
        keys = [f"k{n}" for n in range(40)]
        client.post(f"{path}/messages", json=[{"key": key} for key in keys])
        assert sorted(each.result() for each in waiting) == sorted(keys)


def test_one_of_many_waiters_wakes_up_for_the_next_look() -> None:
    listened: list[Listen] = []
    together = asyncio.Barrier(3)

    async def perform(action: object) -> None:
        assert isinstance(action, Listen)
        listened.append(action)
        await together.wait()

    def wait_until(at: int) -> Flow[None]:
        yield Listen(Bell(), 0, at, 0.01)

    async def wait_together() -> None:
        lookouts = Lookouts()
        async with asyncio.TaskGroup() as group:
            for at in (500, 600, 400):
                group.create_task(PollFlow(perform, lookouts, 30).run(wait_until(at)))
                await asyncio.sleep(0)
        assert not lookouts.suffice(NEVER)

    asyncio.run(wait_together())
    assert [each.looks_at for each in listened] == [500, NEVER, 400]
    assert [each.seconds > 20 for each in listened] == [False, True, False]


def test_too_many_waiters_are_refused() -> None:
    limits = Limits(waiters_per_token=1)
    with (
        served(app_for("memory:waiters", limits=limits)) as server,
        server.client() as http,
        ThreadPoolExecutor(1) as pool,
    ):
        offer(http, "/v1/queues/q", "held")
        token = poll(http, "/v1/queues/q")["deliveries"][0]["token"]
        waiting = pool.submit(lambda: poll(http, "/v1/queues/q", wait=20))
        until(lambda: server.service.live.waiters == 1)
        body = {"wait": 5, "settle": {"ack": [token]}}
        refused = http.post("/v1/queues/q:poll", json=body)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
        assert settle(http, "/v1/queues/q", ack=[token]) == {token: "won"}
        assert http.post("/v1/queues/q:poll", json={}).status_code == 200
        offer(http, "/v1/queues/q", "a")
        assert len(waiting.result()["deliveries"]) == 1


def test_an_answer_that_would_be_too_long_is_cut(path: str) -> None:
    limits = Limits(poll_bytes=250)
    with served(app_for("memory:cut", limits=limits)) as server, server.client() as http:
        for number in range(4):
            offer(http, path, f"k{number}", "x" * 100)
        first = poll(http, path, limit=4)["deliveries"]
        assert [each["key"] for each in first] == ["k0", "k1"]
        second = poll(http, path, limit=4)["deliveries"]
        assert [each["key"] for each in second] == ["k2", "k3"]
        assert [each["attempt"] for each in second] == [1, 1]
        offer(http, path, "long", "x" * 1000)
        assert [each["key"] for each in poll(http, path)["deliveries"]] == ["long"]


def test_a_client_may_ask_for_a_short_answer(http: httpx.Client, path: str) -> None:
    for number in range(4):
        offer(http, path, f"k{number}", "x" * 100)
    for expected in (["k0", "k1"], ["k2", "k3"]):
        found = poll(http, path, limit=4, max_bytes=250)["deliveries"]
        assert [(each["key"], each["attempt"]) for each in found] == [(key, 1) for key in expected]
    refused = http.post(f"{path}:poll", json={"max_bytes": 0})
    assert (refused.status_code, refused.json()["argument"]) == (422, "max_bytes")


def test_max_attempts_buries(path: str) -> None:
    with served(app_for("memory:attempts", max_attempts=2)) as server, server.client() as http:
        offer(http, path, "a")
        for _ in range(2):
            (found,) = poll(http, path)["deliveries"]
            settle(http, path, release=[{"token": found["token"]}])
        assert poll(http, path)["deliveries"] == []
        assert http.get(path).json()["buried"] == 1

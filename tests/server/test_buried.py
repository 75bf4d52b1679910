"""Buried messages over HTTP."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from duequeue.contract.stage import until
from duequeue.server.operations import dropping
from tests.server.served import Served
from tests.server.test_messages import offer
from tests.server.test_polling import poll, settle

HOUR = timedelta(hours=1)


def bury(http: httpx.Client, path: str, key: str, reason: str = "broken") -> None:
    offer(http, path, key, key)
    (found,) = poll(http, path)["deliveries"]
    settle(http, path, bury=[{"token": found["token"], "reason": reason}])


def keys_of(answer: Any) -> list[str]:
    return [each["key"] for each in answer["messages"]]


def until_done(http: httpx.Client, operation: Any) -> Any:
    def is_done() -> bool:
        return bool(status()["state"] != "running")

    def status() -> Any:
        return http.get(f"/v1/operations/{operation['id']}").json()

    until(is_done)
    return status()


def test_pages_and_reasons(http: httpx.Client, path: str) -> None:
    for number in range(5):
        bury(http, path, f"k{number}", "timeout" if number % 2 else "broken")
    first = http.get(f"{path}/buried", params={"limit": 3}).json()
    assert keys_of(first) == ["k0", "k1", "k2"]
    second = http.get(f"{path}/buried", params={"cursor": first["next"], "limit": 3}).json()
    assert keys_of(second) == ["k3", "k4"]
    assert second["next"] is None
    assert keys_of(http.get(f"{path}/buried", params={"reason": "time"}).json()) == ["k1", "k3"]
    message = first["messages"][0]
    assert (message["payload"], message["attempts"], message["reason"]) == ("k0", 1, "broken")


def test_revive_by_key_and_id(http: httpx.Client, path: str) -> None:
    bury(http, path, "a")
    bury(http, path, "a")
    bury(http, path, "b")
    old, _, _ = http.get(f"{path}/buried").json()["messages"]
    body = {"keys": [{"key": "a", "id": old["id"]}, "b", "absent"], "delay": "1h"}
    assert http.post(f"{path}/buried:revive", json=body).json() == {"revived": 2}
    stats = http.get(path).json()
    assert (stats["future"], stats["buried"]) == (2, 1)


def test_revive_by_reason_is_an_operation(http: httpx.Client, path: str) -> None:
    for number in range(4):
        bury(http, path, f"k{number}", "timeout" if number % 2 else "broken")
    answer = http.post(f"{path}/buried:revive", json={"reason": "timeout"})
    assert answer.status_code == 202
    status = until_done(http, answer.json())
    assert (status["state"], status["done"], status["action"]) == ("done", 2, "revive")
    assert http.get(path).json()["due"] == 2


def test_purge_by_id_and_age(http: httpx.Client, path: str) -> None:
    for key in "abc":
        bury(http, path, key)
    first = http.get(f"{path}/buried").json()["messages"][0]
    body: Any = {"ids": [first["id"], "1.1"]}
    assert http.post(f"{path}/buried:purge", json=body).json() == {"purged": 1}
    body = {"before": (datetime.now(UTC) + timedelta(minutes=1)).isoformat()}
    assert http.post(f"{path}/buried:purge", json=body).json() == {"purged": 2}


@pytest.mark.parametrize(
    ("verb", "body", "argument"),
    [
        ("revive", {}, "keys"),
        ("revive", {"keys": [], "reason": ""}, "keys"),
        ("revive", {"keys": [{"key": "a", "id": "x"}]}, "id"),
        ("purge", {}, "before"),
        ("purge", {"ids": ["x"]}, "id"),
        ("purge", {"before": "yesterday"}, "before"),
    ],
)
def test_bad_requests(http: httpx.Client, path: str, verb: str, body: Any, argument: str) -> None:
    answer = http.post(f"{path}/buried:{verb}", json=body)
    assert (answer.status_code, answer.json()["argument"]) == (422, argument)


def test_dropping_by_filter_is_an_operation(http: httpx.Client, path: str) -> None:
    messages = [{"key": f"{'ab'[n % 2]}{n}", "delay": "1h"} for n in range(20)]
    http.post(f"{path}/messages", json=messages)
    answer = http.delete(f"{path}/messages", params={"key_prefix": "a"})
    assert answer.status_code == 202
    done = until_done(http, answer.json())
    assert (done["state"], done["done"]) == ("done", 10)
    assert http.get(path).json()["total"] == 10
    assert http.delete(f"/v1/operations/{done['id']}").json() == done, "it is too late to cancel"
    listed = http.get("/v1/operations").json()["operations"]
    assert answer.json()["id"] in [each["id"] for each in listed]


def test_an_operation_can_be_cancelled(http: httpx.Client, path: str) -> None:
    messages = [{"key": f"k{n}", "delay": "1h"} for n in range(1000)]
    http.post(f"{path}/messages", json=messages)
    started = http.delete(f"{path}/messages", params={"key_prefix": "k"}).json()
    ended = http.delete(f"/v1/operations/{started['id']}").json()
    assert ended["state"] == "cancelled"
    assert http.get(path).json()["total"] == 1000 - ended["done"] > 0
    assert http.get("/v1/operations/none").status_code == 404


def test_a_message_that_no_longer_matches_the_filter_is_not_dropped(
    server: Served, http: httpx.Client, path: str, name: str
) -> None:
    now = datetime.now(UTC)
    for key in "abcd":
        offer(http, path, key)
    (queue,) = [each for each in server.service.queues.opened if each.name == name]

    async def drop_while_others_offer() -> list[int]:
        filters = {"state": "due", "prefix": None, "due_from": None, "due_to": now + HOUR}
        work = dropping(queue, filters)
        done = [await anext(work)]
        await queue.queue.offer("b", b"2", 2 * HOUR)
        await queue.queue.drop("c")
        return [*done, *[each async for each in work]]

    assert server.call(drop_while_others_offer) == [1, 0, 0, 1]
    assert http.get(f"{path}/messages/b").json()["payload"] == 2

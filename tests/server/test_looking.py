"""Stats, forecast, history, queues, limits, health, metrics."""

from datetime import UTC, datetime, timedelta

import httpx
import msgspec

from duequeue.server import Limits
from tests.server.test_messages import offer
from tests.server.test_polling import poll, settle


def test_stats(http: httpx.Client, path: str, name: str) -> None:
    offer(http, path, "due", due_at="2020-01-01T00:00:00Z")
    offer(http, path, "future", due_at="2040-01-01T00:00:00Z")
    assert http.get(path).json() == {
        "name": name,
        "type": "json",
        "total": 2,
        "due": 1,
        "leased": 0,
        "future": 1,
        "buried": 0,
        "oldest_due_at": "2020-01-01T00:00:00.000Z",
        "next_due_at": "2040-01-01T00:00:00.000Z",
    }


def test_queues_are_listed_without_the_server_s_own(
    http: httpx.Client, path: str, name: str
) -> None:
    offer(http, path, "a")
    found = http.get("/v1/queues").json()["queues"]
    assert {"name": name, "type": "json"} in found
    assert "duequeue-crons" not in [each["name"] for each in found]


def test_forecast(http: httpx.Client, path: str) -> None:
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    for ahead in (2, 2, 5):
        due = (hour + timedelta(hours=ahead, minutes=30)).isoformat()
        offer(http, path, f"k{ahead}{due}{len(path)}", due_at=due)
        offer(http, path, f"l{ahead}", due_at=due)
    found = http.get(f"{path}/forecast", params={"hours": 24}).json()
    assert [each["messages"] for each in found["buckets"]] == [2, 2]
    begins = (hour + timedelta(hours=2)).isoformat(timespec="milliseconds")
    assert found["buckets"][0]["begins_at"] == begins.replace("+00:00", "Z")
    assert found["bucket_seconds"] == 3600
    whole = http.get(f"{path}/forecast", params={"hours": 48, "bucket": "2d"}).json()
    assert sum(each["messages"] for each in whole["buckets"]) == 4
    halves = http.get(f"{path}/forecast", params={"bucket": "30m"}).json()["buckets"]
    begins = (hour + timedelta(hours=2, minutes=30)).isoformat(timespec="milliseconds")
    assert halves[0]["begins_at"] == begins.replace("+00:00", "Z")
    for query in ({"bucket": "1ms"}, {"bucket": "0"}, {"hours": "0"}, {"hours": "x"}):
        assert http.get(f"{path}/forecast", params=query).status_code == 422


def test_history(http: httpx.Client, path: str) -> None:
    for key in "ab":
        offer(http, path, key)
    first, second = poll(http, path, limit=2)["deliveries"]
    settle(http, path, ack=[first["token"]], bury=[{"token": second["token"], "reason": "r"}])
    found = http.get(f"{path}/history").json()["messages"]
    assert {each["key"]: each["outcome"] for each in found} == {"a": "acked", "b": "buried"}
    assert all(each["lateness_seconds"] >= 0 for each in found)
    (only,) = http.get(f"{path}/history", params={"key": "a"}).json()["messages"]
    assert only["key"] == "a"
    lines = http.get(f"{path}/history", headers={"Accept": "application/x-ndjson"})
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert [msgspec.json.decode(each)["key"] for each in lines.content.splitlines()] == [
        each["key"] for each in found
    ]


def test_health_and_limits(http: httpx.Client) -> None:
    assert http.get("/healthz").json() == {"status": "ok", "detail": ""}
    assert http.get("/readyz").json() == {"status": "ok", "detail": ""}
    assert http.get("/v1/limits").json()["poll_messages"] == Limits().poll_messages
    assert http.get("/openapi.json").json()["openapi"] == "3.1.0"


def test_metrics(http: httpx.Client, path: str, name: str) -> None:
    offer(http, path, "private-key", "private-payload")
    poll(http, path)
    answer = http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.text.splitlines()
    assert f'duequeue_offers_total{{queue="{name}",outcome="created"}} 1' in lines
    assert f'duequeue_deliveries_total{{queue="{name}"}} 1' in lines
    assert f'duequeue_lateness_seconds_count{{queue="{name}"}} 1' in lines
    assert "private" not in answer.text
    for line in lines:
        assert line.startswith("#") or float(line.rpartition(" ")[2]) >= 0


def test_what_is_not_there(http: httpx.Client, path: str) -> None:
    for place in ("/", "/v1", "/v2/queues", "/v1/queues/q/nothing", "/v1/queues/q/buried/x"):
        answer = http.get(place)
        assert answer.status_code == 404, place
        assert answer.headers["content-type"] == "application/problem+json"
    answer = http.post(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert http.get(path, params={"typ": "json"}).json()["argument"] == "typ"
    assert http.get(f"{path}/messages", params={"limit": "1001"}).json()["argument"] == "limit"
    assert http.get(f"{path}/messages", params={"cursor": "x"}).json()["argument"] == "cursor"
    assert http.get(f"{path}/messages?limit=1&limit=2").status_code == 422


def test_head_is_get_without_the_body(http: httpx.Client, path: str) -> None:
    for place in ("/healthz", "/readyz", path):
        head, got = http.head(place), http.get(place)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(got.content))
    assert http.head(f"{path}:poll").status_code == 405

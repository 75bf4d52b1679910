"""Messages over HTTP: offer, list, read, drop, reschedule."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest

from duequeue import Message, Queue

ODD_KEYS = [
    "../",
    "..",
    ".",
    "a/b",
    "%2F",
    "😀",
    "with a space ",
    "a:run-now",
    "?x=1#y",
    "ключ",
    "a+b&c",
    "tab\there",
    '"',
    "x" * 200,
]


def offer(http: httpx.Client, path: str, key: str, payload: Any = None, **more: Any) -> Any:
    answer = http.post(f"{path}/messages", json={"key": key, "payload": payload, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_outcomes_of_one_message(http: httpx.Client, path: str) -> None:
    due = "2040-01-01T00:00:00.123Z"
    assert offer(http, path, "a", {"n": 1}, due_at=due) == {"outcome": "created"}
    assert offer(http, path, "a", {"n": 1}, due_at=due) == {"outcome": "ignored"}
    assert offer(http, path, "a", {"n": 2}, due_at=due) == {"outcome": "updated"}
    assert offer(http, path, "a", {"n": 3}, replace=False) == {"outcome": "ignored"}


def test_a_list_has_outcomes_in_its_order(http: httpx.Client, path: str) -> None:
    messages = [{"key": key, "payload": 1, "delay": "1h"} for key in "abca"]
    messages[3]["payload"] = 2
    answer = http.post(f"{path}/messages", json=messages)
    assert answer.json() == {"outcomes": ["created", "created", "created", "updated"]}
    assert http.post(f"{path}/messages", json=[]).json() == {"outcomes": []}


def test_lines_have_outcomes_in_their_order(http: httpx.Client, path: str) -> None:
    lines = "\n".join(f'{{"key": "k{n}", "payload": {n}}}' for n in range(2500)) + "\n\n"
    headers = {"Content-Type": "application/x-ndjson"}
    answer = http.post(f"{path}/messages", content=lines, headers=headers)
    assert answer.json() == {"outcomes": ["created"] * 2500}
    assert http.get(path).json()["total"] == 2500


def test_a_bad_line_is_named_and_the_chunks_before_it_stay(http: httpx.Client, path: str) -> None:
    lines = [f'{{"key": "k{n}"}}' for n in range(1200)]
    lines[1100] = '{"key": ""}'
    headers = {"Content-Type": "application/x-ndjson"}
    answer = http.post(f"{path}/messages", content="\n".join(lines), headers=headers)
    assert answer.status_code == 422
    assert answer.json()["argument"] == "line 1101.key"
    assert answer.json()["offered"] == 1000
    assert http.get(path).json()["total"] == 1000


def test_a_line_that_the_library_refuses_is_named(http: httpx.Client, path: str) -> None:
    lines = ['{"key": "a"}', '{"key": "b", "expires": "-1s"}']
    headers = {"Content-Type": "application/x-ndjson"}
    answer = http.post(f"{path}/messages", content="\n".join(lines), headers=headers)
    assert answer.status_code == 422
    assert answer.json()["argument"] == "line 2.expires"


def test_python_and_http_share_a_queue(
    http: httpx.Client, path: str, name: str, store_of_server: str
) -> None:
    value = {"b": [1, 2.5, None, True], "a": "ü"}
    with Queue.open(store_of_server, name) as queue:
        offer(http, path, "from http", value)
        delivery = queue.try_poll()
        assert delivery is not None
        assert (delivery.key, delivery.payload) == ("from http", value)
        delivery.ack()
        queue.offer("from python", value, headers={"trace": "1"})
        queue.offer("same", value, datetime(2040, 1, 1, tzinfo=UTC))
    same = offer(http, path, "same", value, due_at="2040-01-01T00:00:00Z")
    assert same == {"outcome": "ignored"}
    (found,) = http.post(f"{path}:poll", json={"limit": 10}).json()["deliveries"]
    assert (found["key"], found["payload"]) == ("from python", value)
    assert found["headers"] == {"trace": "1"}


@pytest.mark.parametrize("kind", ["bytes", "text", "Order"])
def test_other_payload_types(
    http: httpx.Client, path: str, name: str, store_of_server: str, kind: str
) -> None:
    codec: Any = {"bytes": bytes, "text": str, "Order": Order}[kind]
    value: Any = {"bytes": b"\x00\xff", "text": "grüße", "Order": Order(7)}[kind]
    sent: dict[str, Any] = {"payload": {"total": 7}} if kind == "Order" else {"payload": "grüße"}
    if kind == "bytes":
        sent = {"payload_b64": b64encode(value).decode()}
    query = {"type": kind}
    answer = http.post(f"{path}/messages", params=query, json={"key": "a", **sent})
    assert answer.json() == {"outcome": "created"}
    with Queue.open(store_of_server, name, codec=codec) as queue:
        delivery = queue.try_poll()
        assert delivery is not None
        assert delivery.payload == value
        queue.offer("b", value)
    (found,) = http.post(f"{path}:poll", params=query, json={}).json()["deliveries"]
    assert {field: found[field] for field in sent} == sent


class Order(msgspec.Struct):
    total: int


def test_put_takes_the_body_as_payload(http: httpx.Client, path: str) -> None:
    url = f"{path}/messages/heartbeat"
    assert http.put(url, params={"delay": "60s"}).json() == {"outcome": "created"}
    assert http.get(url).json()["payload"] is None
    assert http.put(url, content=b'{"x": 1}').json() == {"outcome": "updated"}
    assert http.get(url).json()["payload"] == {"x": 1}
    headers = {"DueQueue-Delay": "30m", "DueQueue-Header-Trace": "7", "DueQueue-Replace": "true"}
    assert http.put(url, content=b"2", headers=headers).json() == {"outcome": "updated"}
    found = http.get(url).json()
    assert found["headers"] == {"trace": "7"}
    assert found["state"] == "future"
    assert http.put(url, content=b"3", params={"replace": "false"}).json()["outcome"] == "ignored"
    assert http.put(url, content=b"not json").json()["argument"] == "payload"


def test_put_of_raw_bytes(http: httpx.Client, path: str) -> None:
    url = f"{path}/messages/raw"
    assert http.put(url, params={"type": "bytes"}, content=b"\xff\x00").status_code == 200
    assert http.get(url, params={"type": "bytes"}).json()["payload_b64"] == "/wA="
    packed = http.get(url, params={"type": "bytes"}, headers={"Accept": "application/msgpack"})
    assert msgspec.msgpack.decode(packed.content)["payload"] == b"\xff\x00"


@pytest.mark.parametrize("key", ODD_KEYS)
def test_any_key_works_in_a_path(http: httpx.Client, server: Any, path: str, key: str) -> None:
    url = f"{path}/messages/{quote(key, safe='')}"
    assert _send(server, "PUT", f"{url}?delay=1h", b'"x"')["outcome"] == "created"
    assert _send(server, "GET", url)["key"] == key
    listed = http.get(f"{path}/messages").json()["messages"]
    assert [each["key"] for each in listed] == [key]
    assert _send(server, "POST", f"{url}:run-now")["rescheduled"] is True
    assert _send(server, "DELETE", url) == {"dropped": 1}
    assert http.get(path).json()["total"] == 0


def test_a_slash_in_a_path_is_part_of_the_key(server: Any, http: httpx.Client, path: str) -> None:
    assert _send(server, "PUT", f"{path}/messages/tick/2030/../x", b"1")["outcome"] == "created"
    assert http.get(f"{path}/messages").json()["messages"][0]["key"] == "tick/2030/../x"


def _send(server: Any, method: str, path: str, body: bytes = b"") -> Any:
    """Send a path exactly as it is; clients tidy dots and slashes up."""
    request = httpx.Request(method, server.url, content=body, extensions={"target": path.encode()})
    with httpx.HTTPTransport() as transport:
        answer = transport.handle_request(request)
        data = answer.read()
    assert answer.status_code == 200, data
    return msgspec.json.decode(data)


def test_read_drop_and_reschedule(http: httpx.Client, path: str) -> None:
    url = f"{path}/messages/a"
    for method in ("GET", "DELETE"):
        assert http.request(method, url).status_code == 404
    assert http.patch(url, json={"delay": "1h"}).status_code == 404
    assert http.post(f"{url}:run-now").status_code == 404
    offer(http, path, "a", 1, delay="1h", headers={"h": "v"}, expires="2h")
    found = http.get(url).json()
    assert found["state"] == "future"
    assert found["headers"] == {"h": "v"}
    assert found["due_at"].endswith("Z")
    assert found["expires_at"] > found["due_at"]
    assert http.patch(url, json={"due_at": "2030-02-03T04:05:06.789+01:00"}).status_code == 422
    offer(http, path, "a", 1, delay="1h")
    moved = http.patch(url, json={"due_at": "2030-02-03T04:05:06.789+01:00"})
    assert moved.json() == {"rescheduled": True}
    assert http.get(url).json()["due_at"] == "2030-02-03T03:05:06.789Z"
    assert http.patch(url, json={}).json()["argument"] == "due_at"
    assert http.post(f"{url}:run-now").json() == {"rescheduled": True}
    assert http.get(url).json()["state"] == "due"
    assert http.delete(url).json() == {"dropped": 1}
    assert http.get(url).status_code == 404


def test_pages_in_due_order(http: httpx.Client, path: str, name: str, store_of_server: str) -> None:
    start = datetime(2040, 1, 1, tzinfo=UTC)
    with Queue.open(store_of_server, name) as queue:
        queue.offer_batch([Message(f"k{n}", n, start + timedelta(minutes=n)) for n in range(7)])
        queue.offer("now", 0)
    keys: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = http.get(f"{path}/messages", params={"limit": 3, **cursor}).json()
        keys += [each["key"] for each in page["messages"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert keys == ["now", *(f"k{n}" for n in range(7))]

    def listed(**query: str) -> list[str]:
        found = http.get(f"{path}/messages", params=query).json()["messages"]
        return [each["key"] for each in found]

    assert listed(state="due") == ["now"]
    assert listed(key_prefix="k", limit="2") == ["k0", "k1"]
    assert listed(due_after="2040-01-01T00:05:00Z") == ["k5", "k6"]
    assert listed(due_before="2040-01-01T00:01:00Z", state="future") == ["k0"]


def test_drop_everything_needs_the_name(http: httpx.Client, path: str, name: str) -> None:
    offer(http, path, "a")
    offer(http, path, "b")
    assert http.delete(f"{path}/messages").json()["argument"] == "confirm"
    wrong = http.delete(f"{path}/messages", params={"confirm": "other"})
    assert (wrong.status_code, wrong.json()["argument"]) == (422, "confirm")
    assert http.get(path).json()["total"] == 2
    assert http.delete(f"{path}/messages", params={"confirm": name}).json() == {"dropped": 2}


@pytest.mark.parametrize(
    ("body", "argument"),
    [
        ({}, "key"),
        ({"key": ""}, "key"),
        ({"key": "x" * 201}, "key"),
        ({"key": "a\0"}, "key"),
        ({"key": 1}, "key"),
        ({"key": "a", "playload": 1}, "playload"),
        ({"key": "a", "delay": "soon"}, "delay"),
        ({"key": "a", "delay": -1}, "delay"),
        ({"key": "a", "delay": "9999999999d"}, "delay"),
        ({"key": "a", "due_at": "2030-01-01T00:00:00"}, "due_at"),
        ({"key": "a", "due_at": "tomorrow"}, "due_at"),
        ({"key": "a", "due_at": "2030-01-01T00:00:00Z", "delay": 1}, "delay"),
        ({"key": "a", "headers": {"a": 1}}, "headers[...]"),
        ({"key": "a", "headers": {"a": "x" * 9000}}, "headers"),
        ({"key": "a", "payload_b64": "*"}, "payload_b64"),
        ({"key": "a", "payload": 1, "payload_b64": "MQ=="}, "payload"),
        ({"key": "a", "expires": "1s", "delay": "2s"}, "expires"),
        ({"key": "a", "replace": "yes"}, "replace"),
        ([{"key": "a"}, {"key": "b", "delay": "x"}], "[1].delay"),
        ([{"key": "a"}, {"key": "b", "expires": "-1s"}], "[1].expires"),
        ([{"key": "a"}, {"key": "b", "expires": -1}], "[1].expires"),
        ({"key": "a", "expires": 1e300}, "expires"),
        ({"key": "a", "delay": "3650000d"}, "delay"),
        ([{"key": "a"}, {"key": "b", "delay": "3650000d"}], "[1].delay"),
        ({"key": "a", "due_at": "0001-01-01T00:00:00+14:00"}, "due_at"),
    ],
)
def test_errors_name_the_argument(http: httpx.Client, path: str, body: Any, argument: str) -> None:
    answer = http.post(f"{path}/messages", json=body, headers={"X-Request-Id": "r-1"})
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["argument"] == argument
    assert "datetime." not in problem["detail"], "that means something only in Python"
    assert problem["request_id"] == answer.headers["x-request-id"] == "r-1"
    assert problem["status"] == 422
    assert http.get(path).json()["total"] == 0


@pytest.mark.parametrize("span", [90, 90.5, "90s", "1.5m"])
def test_expiries(http: httpx.Client, path: str, span: Any) -> None:
    offer(http, path, "a", 1, expires=span)
    found = http.get(f"{path}/messages/a").json()
    lasts = [datetime.fromisoformat(found[name]) for name in ("due_at", "expires_at")]
    assert timedelta(seconds=90) <= lasts[1] - lasts[0] < timedelta(seconds=91)


@pytest.mark.parametrize("number", [1, 1.5, "1.5s", "30m", "250ms", "2h", "1d"])
def test_delays(http: httpx.Client, path: str, number: Any) -> None:
    before = datetime.now(UTC)
    offer(http, path, "a", 1, delay=number)
    due = datetime.fromisoformat(http.get(f"{path}/messages/a").json()["due_at"])
    assert timedelta(0) < due - before <= timedelta(days=1, seconds=10)


def test_msgpack_on_the_hot_routes(http: httpx.Client, path: str) -> None:
    packed = {"Content-Type": "application/msgpack"}
    body = msgspec.msgpack.encode([{"key": "a", "payload": {"n": 2**60}}, {"key": "b"}])
    answer = http.post(f"{path}/messages", content=body, headers=packed)
    assert answer.headers["content-type"] == "application/msgpack"
    assert msgspec.msgpack.decode(answer.content) == {"outcomes": ["created", "created"]}
    body = msgspec.msgpack.encode({"limit": 2})
    found = msgspec.msgpack.decode(http.post(f"{path}:poll", content=body, headers=packed).content)
    assert [each["payload"] for each in found["deliveries"]] == [{"n": 2**60}, None]
    tokens = [each["token"] for each in found["deliveries"]]
    body = msgspec.msgpack.encode({"ack": tokens})
    settled = http.post(
        f"{path}:settle", content=body, headers={**packed, "Accept": "application/json"}
    )
    assert settled.json() == {"settled": dict.fromkeys(tokens, "won")}
    assert http.post(f"{path}:poll", content=b"\xc1", headers=packed).status_code == 400

"""Clients that go away in the middle."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from duequeue import Queue
from duequeue.contract.stage import until
from duequeue.server import app_for
from duequeue.server.queues import ServedQueue
from tests.server.served import Served
from tests.server.test_messages import offer
from tests.server.test_polling import poll


def send(server: Served, head: str, body: bytes, length: int | None = None) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    size = len(body) if length is None else length
    lines = [head, "Host: localhost", f"Content-Length: {size}", "", ""]
    connection.sendall("\r\n".join(lines).encode() + body)
    return connection


def test_a_poll_that_nobody_waits_for_takes_nothing(
    server: Served, http: httpx.Client, path: str
) -> None:
    connection = send(server, f"POST {path}:poll HTTP/1.1", b'{"wait": 60}')
    until(lambda: server.service.live.waiters == 1)
    connection.close()
    until(lambda: server.service.live.waiters == 0)
    offer(http, path, "a")
    (found,) = poll(http, path)["deliveries"]
    assert found["attempt"] == 1


def test_what_was_leased_for_a_client_that_went_away_comes_back(
    server: Served, http: httpx.Client, path: str, name: str
) -> None:
    """The server leases for a client that has just gone, before it learns of that."""
    offer(http, path, "first")  # which makes the queue
    http.delete(f"{path}/messages/first")
    connection = send(server, f"POST {path}:poll HTTP/1.1", b'{"wait": 60}')
    until(lambda: server.service.live.waiters == 1)
    (queue,) = [each for each in server.service.queues.opened if each.name == name]

    async def offer_as_it_goes() -> None:
        # Both happen before the loop of the server looks at its connections again.
        connection.close()
        await queue.queue.offer("a", b"1")

    server.call(offer_as_it_goes)
    until(lambda: server.service.live.waiters == 0)
    until(lambda: http.get(path).json()["due"] == 1)
    (found,) = poll(http, path)["deliveries"]
    assert found["attempt"] == 1


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "later"])
def test_a_client_goes_away_that_has_sent_another_request(
    server: Served,
    http: httpx.Client,
    path: str,
    caplog: pytest.LogCaptureFixture,
    *,
    at_once: bool,
) -> None:
    another = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    body = b'{"wait": 60}'
    sent = body + another * 2 if at_once else body
    connection = send(server, f"POST {path}:poll HTTP/1.1", sent, length=len(body))
    until(lambda: server.service.live.waiters == 1)
    if not at_once:
        connection.sendall(another)
        until(lambda: server.pipelined == 1)
        connection.sendall(another)
        until(lambda: server.pipelined == 2)
    connection.close()
    until(lambda: server.service.live.waiters == 0)
    offer(http, path, "a")
    (found,) = poll(http, path)["deliveries"]
    assert found["attempt"] == 1
    assert [each for each in caplog.records if each.levelname in {"WARNING", "ERROR"}] == []


def test_requests_that_were_sent_ahead_are_answered_in_order(
    server: Served, http: httpx.Client, path: str
) -> None:
    """Also if they are more than the server reads ahead."""
    body, payload = b'{"wait": 60}', b'"' + b"x" * 50_000 + b'"'
    ahead = b"".join(
        b"PUT %s/messages/%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
        % (path.encode(), number, len(payload), payload)
        for number in range(20)
    )
    with send(server, f"POST {path}:poll HTTP/1.1", body) as connection:
        until(lambda: server.service.live.waiters == 1)
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(connection.sendall, ahead)
            until(lambda: server.pipelined >= 1)
            offer(http, path, "first")
            answers = b""
            while answers.count(b'"outcome":"created"') < 20:
                part = connection.recv(65536)
                assert part, answers
                answers += part
            sending.result()
    assert http.get(path).json()["total"] == 21


@pytest.mark.parametrize("draining", [False, True])
def test_a_client_that_leaves_while_its_messages_are_leased(*, draining: bool) -> None:
    """They are given back, also by a server that is about to stop."""

    async def leave() -> int:
        service = app_for("memory:left", trusted=True)
        queue = await service.queues.get("q", "json")
        await queue.queue.offer("a", b"1")
        service.live.draining = draining
        bodies: list[Any] = [{"type": "http.request", "body": b'{"wait": 60}'}]
        looking, left = asyncio.Event(), asyncio.Event()
        perform = queue.perform

        async def perform_as_the_client_leaves(action: Any) -> object:
            looking.set()
            await left.wait()
            return await perform(action)

        async def receive() -> Any:
            if bodies:
                return bodies.pop()
            await looking.wait()
            left.set()
            return {"type": "http.disconnect"}

        async def send(_: Any) -> None:
            pass

        queue.perform = perform_as_the_client_leaves
        path = "/v1/queues/q:poll"
        scope = {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""}
        await service(scope, receive, send)
        due = (await queue.queue.stats()).due
        await service.close()
        return due

    assert asyncio.run(leave()) == 1


def test_a_message_given_back_wakes_another_waiter(
    server: Served, http: httpx.Client, path: str
) -> None:
    for _ in range(5):
        gone = send(server, f"POST {path}:poll HTTP/1.1", b'{"wait": 60}')
        until(lambda: server.service.live.waiters == 1)
        waits = send(server, f"POST {path}:poll HTTP/1.1", b'{"wait": 60}')
        until(lambda: server.service.live.waiters == 2)
        gone.close()
        offer(http, path, "a", datetime.now(UTC).isoformat())
        answer = b""
        while b'"token"' not in answer:
            part = waits.recv(65536)
            assert part, "the connection was closed"
            answer += part
        waits.close()
        until(lambda: server.service.live.waiters == 0)
        http.delete(f"{path}/messages/a")


def test_a_waiter_that_goes_away_leaves_the_next_look_to_another(
    server: Served, http: httpx.Client, path: str
) -> None:
    http.put(f"{path}/messages/later", params={"delay": "500ms"})
    looking = send(server, f"POST {path}:poll HTTP/1.1", b'{"wait": 60}')
    until(lambda: server.service.live.waiters == 1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(poll, http, path, wait=30)
        until(lambda: server.service.live.waiters == 2)
        looking.close()
        assert [each["key"] for each in waiting.result()["deliveries"]] == ["later"]


def test_an_upload_that_is_cut_off_offers_no_half_message(
    server: Served, http: httpx.Client, path: str, name: str, store_of_server: str
) -> None:
    lines = b"".join(b'{"key":"k%d","payload":"%s"}\n' % (n, b"x" * 100) for n in range(1500))
    head = f"POST {path}/messages HTTP/1.1\r\nContent-Type: application/x-ndjson"
    for cut in (len(lines) - 40, len(lines) // 2):
        connection = send(server, head, lines[:cut], length=len(lines))
        until(lambda: any(each.name == name for each in server.service.queues.opened))
        connection.close()
        until(lambda: all(each.users == 0 for each in opened(server, name)))
    with Queue.open(store_of_server, name) as queue:
        found = queue.list(limit=1000).messages
        assert all(each.payload == "x" * 100 for each in found)
        assert queue.stats().total in {0, 1000}
    answer = http.post(
        f"{path}/messages", content=lines, headers={"Content-Type": "application/x-ndjson"}
    )
    assert len(answer.json()["outcomes"]) == 1500
    assert http.get(path).json()["total"] == 1500


def opened(server: Served, name: str) -> list[ServedQueue]:
    return [each for each in server.service.queues.opened if each.name == name]


def test_a_request_that_is_cut_off_does_nothing(
    server: Served, http: httpx.Client, path: str
) -> None:
    before = cut_off(http)
    connection = send(server, f"PUT {path}/messages/a HTTP/1.1", b'"half', length=100)
    connection.close()
    until(lambda: cut_off(http) == before + 1)
    assert http.get(path).json()["total"] == 0


def cut_off(http: httpx.Client) -> int:
    """Return how many uploads of a payload the server has given up."""
    labels = 'method="PUT",route="/v1/queues/{queue}/messages/{key}",code="499"'
    begin = f"duequeue_http_request_duration_seconds_count{{{labels}}} "
    lines = http.get("/metrics").text.splitlines()
    return sum(int(each.removeprefix(begin)) for each in lines if each.startswith(begin))

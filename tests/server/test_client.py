"""`Queue.open("http://…")`: tokens, outages, refusals, wake-ups."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from duequeue import (
    AsyncQueue,
    Delivery,
    History,
    Message,
    OfferOutcome,
    Queue,
    RetryPolicy,
    StoreError,
    StoreUnavailable,
    queues,
)
from duequeue.contract.parts import open_parts
from duequeue.contract.stage import until
from duequeue.instants import to_millis
from duequeue.server import app_for
from duequeue.server.tokens import Scope, TokenFile, new_token
from tests.fixtures.servers import free_port
from tests.server.command import serving
from tests.server.served import Served, served

LONG = timedelta(minutes=10)


def test_http_python_and_the_store_share_a_queue(
    server: Served, http: httpx.Client, name: str, path: str, store_of_server: str
) -> None:
    with (
        Queue.open(server.url, name) as remote,
        Queue.open(store_of_server, name) as direct,
    ):
        remote.offer("a", {"n": 1})
        assert http.get(f"{path}/messages/a").json()["payload"] == {"n": 1}
        found = direct.try_poll()
        assert found is not None
        assert found.ack()
        http.put(f"{path}/messages/b", content=b"2")
        found = remote.try_poll()
        assert found is not None
        assert (found.key, found.payload) == ("b", 2)
    assert (name, "json") in queues(server.url)


@pytest.mark.parametrize("producer", ["client", "http", "store"])
def test_a_blocking_poll_is_woken_at_once(
    server: Served, http: httpx.Client, name: str, path: str, store_of_server: str, producer: str
) -> None:
    with (
        Queue.open(server.url, name, poll_interval=LONG) as queue,
        Queue.open(store_of_server if producer == "store" else server.url, name) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        for number in range(3):
            waiting = pool.submit(queue.poll, timeout=20)
            until(lambda: server.service.live.waiters == 1)
            if producer == "http":
                http.put(f"{path}/messages/k{number}")
            else:
                other.offer(f"k{number}", None)
            delivery = waiting.result()
            assert delivery is not None
            assert delivery.key == f"k{number}"
            delivery.ack()


def test_an_idle_client_asks_seldom(server: Served, name: str) -> None:
    with (
        ThreadPoolExecutor(1) as pool,
        Queue.open(server.url, name, poll_interval=LONG) as queue,
    ):
        waiting = pool.submit(queue.poll, timeout=4)
        until(lambda: server.service.live.waiters == 1)
        before = server.requests("/")
        assert waiting.result() is None
        assert server.requests("/") - before <= 4


def test_what_a_client_offers_does_not_wake_itself(name: str) -> None:
    alerted: list[object] = []
    mine, before, after = (datetime(2040 + number, 1, 1, tzinfo=UTC) for number in range(3))
    numbers = count()
    with (
        served(app_for("memory:echo")) as server,
        Queue.open(server.url, name) as other,
    ):
        parts = open_parts(server.url, name)
        alerts = parts.backend.alerts(parts.session, f"{name}|json", alerted.append)

        def is_alerted(due: datetime) -> bool:
            other.offer(f"yours{next(numbers)}", 2, due)
            return to_millis(due) in alerted

        with parts.queue as queue, closing(alerts):
            alerts.listen(LONG.total_seconds())
            until(lambda: is_alerted(before))
            queue.offer("mine", 1, mine)
            until(lambda: is_alerted(after))
            assert to_millis(mine) not in alerted


def test_what_a_client_offers_ends_its_own_poll(server: Served, name: str) -> None:
    with (
        ThreadPoolExecutor(1) as pool,
        Queue.open(server.url, name, poll_interval=LONG) as queue,
    ):
        waiting = pool.submit(queue.poll)
        until(lambda: server.service.live.waiters == 1)
        queue.offer("now", 3)
        assert waiting.result().key == "now"


def test_consumers_crons_and_history_work(server: Served, name: str) -> None:
    handled: list[str] = []
    done = threading.Event()

    def handle(delivery: Delivery) -> None:
        handled.append(delivery.key)
        if len(handled) == 50:
            done.set()

    with Queue.open(server.url, name, history=True) as queue:
        queue.cron.install_periodic_tick("tick", timedelta(hours=1), 0)
        assert [each.prefix for each in queue.cron.list()] == ["tick"]
        queue.cron.run_now("tick")
        with queue.consume(handle, concurrency=4):
            queue.offer_batch([Message(f"k{n}", n) for n in range(49)])
            assert done.wait(20)
        assert len(queue.history(limit=100)) == 50
    with History.open(server.url) as history:
        assert any(kind == f"{name}|json" for kind in history.kinds())


def test_a_token_is_needed_and_its_scopes_count(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    given = {}
    for scope in (Scope.OFFER, Scope.ADMIN):
        given[scope], grant = new_token([scope], datetime.now(UTC), prefix="orders")
        tokens.add(grant)
    with served(app_for("memory:client", token_file=tokens.path)) as server:
        with pytest.raises(StoreError, match=r"401.*pass a valid token=, or set DUEQUEUE_TOKEN"):
            Queue.open(server.url, "orders")
        with pytest.raises(StoreError, match="403"):
            Queue.open(server.url, "others", token=given[Scope.ADMIN])
        with Queue.open(server.url, "orders", token=given[Scope.OFFER]) as queue:
            assert queue.offer("a", 1) is OfferOutcome.CREATED
            with pytest.raises(StoreError, match="403"):
                queue.try_poll()
            with pytest.raises(StoreError, match="403"):
                queue.drop_all("orders")
            assert given[Scope.OFFER] not in repr(queue)
        with Queue.open(server.url, "orders", token=given[Scope.ADMIN]) as queue:
            assert queue.drop_all("orders") == 1
        with pytest.raises(StoreError, match="403"):
            Queue.open(server.url, "duequeue-crons", token=given[Scope.ADMIN])
        assert [each.name for each in queues(server.url, token=given[Scope.ADMIN])] == ["orders"]


def test_the_environment_may_have_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    token, grant = new_token([Scope.ADMIN], datetime.now(UTC))
    tokens.add(grant)
    monkeypatch.setenv("DUEQUEUE_TOKEN", token)
    with (
        served(app_for("memory:environment", token_file=tokens.path)) as server,
        Queue.open(server.url, "orders") as queue,
    ):
        assert queue.stats().total == 0


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("http://user:my-secret@host", {}, "token="),
        ("http://", {}, "names no host"),
        ("http://host:port", {}, "port"),
        ("http://host?x=1", {}, "only one option, ssl_ca"),
        ("http://host?ssl_ca=x", {}, "is for https"),
        ("http://host", {"token": "two words"}, "token"),
        ("http://host", {"token": "a\r\nX: y"}, "token"),
        ("memory:", {"token": "x"}, "token can be used only"),
    ],
)
def test_bad_addresses(url: str, options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words) as raised:
        Queue.open(url, "orders", **options)
    assert "my-secret" not in str(raised.value)


def test_an_unreachable_server_is_named() -> None:
    url = "http://127.0.0.1:1"
    with pytest.raises(StoreUnavailable, match=url):
        Queue.open(url, "orders", retry=RetryPolicy.never())

    async def open_it() -> None:
        await AsyncQueue.open(url, "orders", retry=RetryPolicy.never())

    with pytest.raises(StoreUnavailable, match=url):
        asyncio.run(open_it())


def test_another_server_is_recognised(server: Served) -> None:
    with pytest.raises(StoreError, match=r"404.*path"):
        Queue.open(f"{server.url}/elsewhere", "orders")


def test_an_answer_that_cannot_be_read_is_an_error_at_once() -> None:
    with welcoming() as url:
        with pytest.raises(StoreError, match=r"cannot be read .*is it a DueQueue server") as raised:
            Queue.open(url, "orders")
        assert not isinstance(raised.value, StoreUnavailable)

        async def open_it() -> None:
            await AsyncQueue.open(url, "orders")

        with pytest.raises(StoreError, match=r"cannot be read .*is it a DueQueue server"):
            asyncio.run(open_it())


@contextmanager
def welcoming() -> Iterator[str]:
    """Serve a page that answers every request with a friendly sentence."""

    class Page(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<h1>Welcome to our shop</h1>")

        def log_message(self, *words: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_within_is_refused(server: Served, name: str) -> None:
    with Queue.open(server.url, name) as queue, pytest.raises(TypeError, match="over HTTP"):
        queue.within(object())


def test_a_restarted_server_is_found_again(tmp_path: Path) -> None:
    with (
        serving(folder=tmp_path, port=free_port()) as first,
        ThreadPoolExecutor(1) as pool,
        Queue.open(first.url, "orders", poll_interval=LONG) as queue,
    ):
        waiting = pool.submit(queue.poll, timeout=60)
        first.kill()
        with (
            serving(folder=tmp_path, port=first.port) as second,
            Queue.open(second.url, "orders") as producer,
        ):
            producer.offer("a", 1)
            delivery = waiting.result()
            assert delivery is not None
            assert delivery.ack()


def test_a_drained_server_lets_its_clients_go(tmp_path: Path) -> None:
    never = RetryPolicy.never()
    with (
        serving(folder=tmp_path) as server,
        ThreadPoolExecutor(1) as pool,
        Queue.open(server.url, "orders", poll_interval=LONG, retry=never) as queue,
    ):
        pool.submit(queue.poll)
        with server.client() as http:
            until(lambda: "duequeue_waiters 1" in http.get("/metrics").text)
        assert server.terminate() == 0
        assert "graceful shutdown exceeded" not in server.rest()


def test_clients_of_another_version_are_refused(http: httpx.Client) -> None:
    headers = {"Content-Type": "application/msgpack"}
    for body in (b"\x92\xa4nope\x90", b"\xc1", b""):
        answer = http.post("/v1/port:call", content=body, headers=headers)
        assert answer.status_code in {400, 422}

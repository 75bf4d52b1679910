"""A server that does not answer: every call ends in time, says why, and works again afterwards."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any

import psycopg
import pytest

from duequeue import OfferOutcome, Queue, QueueClosed, RetryPolicy, StoreUnavailable
from duequeue.contract.faces import AsyncFace, Face, LoopThread, QueueFace
from duequeue.contract.phrases import PATIENCE, SECOND, in_background
from duequeue.contract.stage import until
from duequeue.drive.actions import Run
from duequeue.flows import context, inspecting
from duequeue.port.store import LONGEST_CALL
from duequeue.server import app_for
from duequeue.stores.http import answers as silence_over_http
from duequeue.stores.http.address import ServerAddress
from duequeue.stores.http.connections import ClientConnections
from duequeue.stores.http.connections_async import Client
from duequeue.stores.sql.connections import pool, pool_async, watchdog
from tests.fixtures.mariadb import connected
from tests.fixtures.silence import EVERY_SILENCE, FrozenProcess, Silence, black_hole
from tests.race.holding import holding
from tests.server.command import serving
from tests.server.served import served

CREATED, IGNORED = OfferOutcome.CREATED, OfferOutcome.IGNORED
BUDGET = SECOND  # of which a single try may take two
ONE_TRY = 2.0
AFTER_ONE_TRY = ONE_TRY + 1.5  # the first try is over, and the second one is not
SLACK = 10.0  # seconds for a busy machine

with_a_pool = pytest.mark.parametrize(
    "silence", ["black hole", "black hole to MariaDB"], indirect=True
)


@contextmanager
def ends_within(seconds: float) -> Iterator[None]:
    began = monotonic()
    yield
    assert monotonic() - began < seconds + SLACK


@contextmanager
def silent(silence: Silence) -> Iterator[None]:
    silence.begin()
    try:
        yield
    finally:
        silence.end()


@pytest.fixture
def queue(silence: Silence, face: Face) -> Iterator[QueueFace]:
    """A queue that has used its connection before the silence begins."""
    with face.open(silence.url, "orders", retry=RetryPolicy(budget=BUDGET)) as queue:
        queue.offer("before", 1, timedelta(hours=1))
        yield queue


@pytest.mark.parametrize("silence", EVERY_SILENCE, indirect=True)
def test_an_offer(silence: Silence, queue: QueueFace) -> None:
    refused = pytest.raises(StoreUnavailable, match="no answer within 2 s")
    with silent(silence), ends_within(ONE_TRY), refused:
        queue.offer("a", 1)
    assert queue.offer("b", 1) is CREATED


def test_a_poll_with_a_timeout(silence: Silence, queue: QueueFace) -> None:
    with silent(silence), ends_within(ONE_TRY), pytest.raises(StoreUnavailable, match="no answer"):
        queue.poll(SECOND)
    queue.offer("a", 1)
    assert queue.poll(10 * SECOND) is not None


def test_opening(silence: Silence, face: Face) -> None:
    # Redis has five seconds to connect.
    on_redis = silence.url.startswith("redis:")
    url = silence.url if on_redis else f"{silence.url}?connect_timeout=2"
    limit = ends_within(5 if on_redis else 2)
    with silent(silence), limit, pytest.raises(StoreUnavailable):
        face.open(url, "orders", retry=RetryPolicy(budget=BUDGET)).close()
    face.open(silence.url, "orders").close()


def test_a_call_goes_on_when_the_server_answers_again(silence: Silence, face: Face) -> None:
    with face.open(silence.url, "orders", retry=RetryPolicy(budget=6 * SECOND)) as queue:
        queue.offer("a", 1)
        with silent(silence):
            offering = in_background(partial(queue.offer, "b", 1))
            with pytest.raises(TimeoutError):
                offering.result(AFTER_ONE_TRY)
        # The server may have received the first try, and then ignores the second.
        assert offering.result(PATIENCE) in {CREATED, IGNORED}
        assert queue.contains("b")


def test_closing(silence: Silence, face: Face) -> None:
    queue = face.open(silence.url, "orders", retry=RetryPolicy(budget=BUDGET))
    queue.offer("a", 1, timedelta(hours=1))
    polling = in_background(queue.poll)
    queue.stats()
    with silent(silence):
        with ends_within(ONE_TRY):
            queue.close()
        assert isinstance(polling.exception(PATIENCE), QueueClosed | StoreUnavailable)


def test_stopping_a_consumer(
    silence: Silence, queue: QueueFace, face: Face, loop_thread: LoopThread
) -> None:
    with (
        holding(queue, face, loop_thread) as (consumer, _),
        silent(silence),
        ends_within(1 + 5),
    ):
        consumer.stop(SECOND)


def test_a_consumer_works_on_afterwards(
    silence: Silence, face: Face, loop_thread: LoopThread
) -> None:
    # A claim that arrives when the silence ends leases a message to nobody.
    options: dict[str, Any] = {"lease": 2 * SECOND, "poll_interval": SECOND / 10}
    with (
        face.open(silence.url, "orders", retry=RetryPolicy(budget=BUDGET), **options) as queue,
        holding(queue, face, loop_thread) as (consumer, handler),
    ):
        with silent(silence), pytest.raises(StoreUnavailable):
            queue.offer("lost", 1)
        handler.may_end.set()
        queue.offer("next", 1)
        until(lambda: queue.stats().total == 0)
        consumer.stop(SECOND)


@pytest.fixture
def probes_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (watchdog, pool, pool_async):
        monkeypatch.setattr(module, "PROBE_EVERY", 0.3)
    monkeypatch.setattr(watchdog, "PROBE_SECONDS", 2)


@pytest.fixture(params=["black hole", "frozen"])
def silent_service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Silence]:
    """A DueQueue server that does not answer, or a network to it that loses everything."""
    with serving("--dev", folder=tmp_path) as server:
        if request.param == "frozen":
            yield FrozenProcess(server.process, server.url)
        else:
            with black_hole(server.url) as hole:
                yield hole


@pytest.mark.parametrize("call", ["stats", "drop_all"])
def test_a_long_call_over_http_is_given_up_if_nobody_gets_an_answer(
    silent_service: Silence, face: Face, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence_over_http, "PROBE_EVERY", 0.3)
    monkeypatch.setattr(silence_over_http, "PROBE_SECONDS", 2.0)
    arguments = ["orders"] if call == "drop_all" else []
    with face.open(silent_service.url, "orders", retry=RetryPolicy.never()) as queue:
        queue.offer("before", 1)
        refused = pytest.raises(StoreUnavailable, match="none to another request within 2 s")
        with silent(silent_service), ends_within(0.3 + 2), refused:
            in_background(partial(getattr(queue, call), *arguments)).result(PATIENCE)
        assert queue.stats().total <= 1  # it may have been dropped when the silence ended


@contextmanager
def proxy_without_its_server(status: int) -> Iterator[ServerAddress]:
    """A proxy that lets a long call wait, and has this answer for all others."""
    over = Event()

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(status)

        def do_POST(self) -> None:
            over.wait(PATIENCE)

        def log_message(self, *words: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield ServerAddress("http", "127.0.0.1", server.server_port, "")
        finally:
            over.set()
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("status", [502, 504])
def test_what_a_proxy_answers_is_no_answer_of_the_server(
    status: int, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence_over_http, "PROBE_EVERY", 0.1)

    async def post(address: ServerAddress) -> object:
        client = Client(address)
        client.join()
        try:
            return await client.post("/", b"", LONGEST_CALL)
        finally:
            await client.leave()

    with proxy_without_its_server(status) as address:
        if isinstance(face, AsyncFace):
            call = partial(face.loop.run, partial(post, address))
        else:
            call = partial(ClientConnections(address).post, "/", b"", LONGEST_CALL)
        with pytest.raises((TimeoutError, StoreUnavailable), match="none to another request"):
            in_background(call).result(PATIENCE)


def test_a_long_operation_has_ten_minutes_for_each_try() -> None:
    with Queue[Any].open("memory:", "orders") as queue:
        used = queue._context  # noqa: SLF001 - what a face runs its flows with
        for flow in (inspecting.stats(used), inspecting.drop_all(used, "orders")):
            action = next(flow)
            assert isinstance(action, Run)
            assert action.seconds == timedelta(minutes=10).total_seconds()


@with_a_pool
@pytest.mark.usefixtures("probes_soon")
def test_a_long_operation_is_given_up_if_nobody_gets_an_answer(
    silence: Silence, queue: QueueFace
) -> None:
    refused = pytest.raises(StoreUnavailable, match="none to a new connection")
    with silent(silence), ends_within(0.3 + 2), refused:
        queue.stats()


def slow_down_on_postgres(url: str) -> None:
    slow = """
        CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN PERFORM pg_sleep(4); RETURN OLD; END
        $$;
        CREATE TRIGGER wait BEFORE DELETE ON duequeue_message
            FOR EACH ROW EXECUTE FUNCTION wait()
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(slow)


def slow_down_on_mariadb(url: str) -> None:
    with connected(url) as cursor:
        cursor.execute(
            "CREATE TRIGGER wait BEFORE DELETE ON duequeue_message FOR EACH ROW DO SLEEP(4)"
        )


@pytest.mark.usefixtures("probes_soon")
@pytest.mark.parametrize(
    ("url_of", "slow_down"),
    [("postgres_url", slow_down_on_postgres), ("mariadb_url", slow_down_on_mariadb)],
    ids=["postgres", "mariadb"],
)
def test_a_long_operation_may_take_its_time(
    request: pytest.FixtureRequest, face: Face, url_of: str, slow_down: Callable[[str], None]
) -> None:
    url: str = request.getfixturevalue(url_of)
    # It takes longer than connecting may.
    with face.open(f"{url}?connect_timeout=3", "orders", retry=RetryPolicy.never()) as queue:
        queue.offer("a", 1)
        slow_down(url)
        assert queue.drop_all("orders") == 1


@pytest.mark.usefixtures("probes_soon")
def test_even_a_long_operation_ends_at_last(
    postgres_url: str, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    with face.open(postgres_url, "orders", retry=RetryPolicy.never()) as queue:
        queue.offer("a", 1)
        slow_down_on_postgres(postgres_url)
        for module in (context, pool, pool_async, watchdog):
            monkeypatch.setattr(module, "LONGEST_CALL", 0.6)
        with pytest.raises(StoreUnavailable, match=r"no answer within 0\.6 s"):
            queue.drop_all("orders")


def test_a_long_call_over_http_may_take_its_time(
    face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence_over_http, "PROBE_EVERY", 0.1)
    with (
        served(app_for("memory:slow")) as server,
        ThreadPoolExecutor(1) as calling,
        face.open(server.url, "orders", retry=RetryPolicy.never()) as queue,
    ):
        queue.offer("a", 1)
        turns = [server.service.reads.turn(each, "") for each in ("one", "two")]
        for turn in turns:
            server.call(turn.__aenter__)
        counting = calling.submit(queue.stats)
        until(lambda: server.requests("/healthz") > 0)
        for turn in turns:
            server.call(turn.__aexit__, None, None, None)
        assert counting.result().total == 1

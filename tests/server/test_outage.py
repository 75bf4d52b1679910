"""What the server answers while its database is stopped, and how soon it notices the end."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest

from duequeue import Queue, RetryPolicy, StoreUnavailable, SystemClock
from duequeue.contract.stage import until
from duequeue.parts import QueueSettings
from duequeue.server import Limits, Service, app_for, queues, store_watch
from duequeue.server.access import Access
from tests.fixtures.mariadb import MariaDBServer
from tests.fixtures.postgres import PostgresServer
from tests.fixtures.redis_server import RedisServer
from tests.fixtures.silence import Silence
from tests.server.served import PATIENCE, Served, served
from tests.server.test_messages import offer
from tests.server.test_polling import poll

Server = PostgresServer | MariaDBServer | RedisServer
AN_HOUR = RetryPolicy(budget=timedelta(hours=1))
A_MOMENT = RetryPolicy(budget=timedelta(milliseconds=100))
Q = "/v1/queues/q"


@pytest.fixture(params=["frail_server", "frail_mariadb", "frail_redis"])
def stoppable(request: pytest.FixtureRequest) -> Server:
    """Each server that may be stopped."""
    server: Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def frail(stoppable: Server) -> Iterator[Served]:
    """A server on a database that may be stopped."""
    with ExitStack() as ended:
        if isinstance(stoppable, RedisServer):
            url = stoppable.fresh_url()
            ended.callback(stoppable.ask, "FLUSHALL")
        else:
            url = stoppable.create_database()
            ended.callback(stoppable.drop_database, url)
        yield ended.enter_context(served(app_for(url, poll_interval=timedelta(seconds=1))))


@pytest.fixture
def http(frail: Served) -> Iterator[httpx.Client]:
    with frail.client() as http:
        yield http


@contextmanager
def waiting(
    client: httpx.Client, frail: Served, **asked: object
) -> Iterator["Future[httpx.Response]"]:
    """Let a request wait for a message during the block."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(lambda: client.post(f"{Q}:poll", json=asked, timeout=2 * PATIENCE))
        until(lambda: frail.service.live.waiters == 1)
        yield answer


def status_of_ready(http: httpx.Client) -> int:
    return http.get("/readyz").status_code


def test_ready_follows_the_database(stoppable: Server, frail: Served, http: httpx.Client) -> None:
    """No other request has to fail or to succeed for that."""
    assert status_of_ready(http) == 200
    with stoppable.stopped():
        until(lambda: status_of_ready(http) == 503)
        assert http.get("/readyz").json()["status"] == "unavailable"
        assert http.get("/healthz").status_code == 200
    until(lambda: status_of_ready(http) == 200)


def test_ready_notices_a_database_that_accepts_and_never_answers(silence: Silence) -> None:
    with served(app_for(silence.url)) as server, server.client() as http:
        assert status_of_ready(http) == 200
        silence.begin()
        try:
            until(lambda: status_of_ready(http) == 503)
            assert http.get("/metrics").status_code == 200
        finally:
            silence.end()
        until(lambda: status_of_ready(http) == 200)


def test_many_probes_cost_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_watch, "SECONDS", 3600.0)  # no look is ever too old
    service = app_for("memory:probed")
    looks, look = [], service.queues.backend.count_types

    def counted(name: str, most: int) -> Any:
        looks.append(name)
        return look(name, most)

    monkeypatch.setattr(service.queues.backend, "count_types", counted)
    with served(service) as server, server.client() as http:
        for _ in range(20):
            assert status_of_ready(http) == 200
    assert len(looks) == 1


def test_a_waiting_poll_outlives_an_outage(
    stoppable: Server, frail: Served, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "RETRY", A_MOMENT)
    with waiting(http, frail, wait=40) as answer, frail.client() as other:
        with stoppable.stopped():
            until(lambda: status_of_ready(other) == 503)
            assert not answer.done()
        until(lambda: status_of_ready(other) == 200)
        offer(other, Q, "a")
        assert [each["key"] for each in answer.result().json()["deliveries"]] == ["a"]


def test_a_poll_whose_time_ends_in_an_outage(
    stoppable: Server, frail: Served, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "RETRY", A_MOMENT)
    poll(http, Q)
    with stoppable.stopped():
        answer = http.post(f"{Q}:poll", json={"wait": "100ms"})
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) >= 1


def test_new_requests_fail_at_once_in_a_known_outage(
    stoppable: Server,
    frail: Served,
    http: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    offer(http, Q, "a")
    monkeypatch.setattr(queues, "RETRY", AN_HOUR)  # longer than any client waits
    with stoppable.stopped():
        until(lambda: status_of_ready(http) == 503 and "available 0" in http.get("/metrics").text)
        caplog.clear()
        for method, path in (
            ("POST", f"{Q}:poll"),
            ("PUT", f"{Q}/messages/b"),
            ("PUT", "/v1/queues/new/messages/b"),
            ("GET", Q),
            ("GET", "/v1/queues"),
            ("GET", "/v1/crons"),
        ):
            answer = http.request(method, path)
            assert answer.status_code == 503, path
            assert answer.json()["type"] == "urn:duequeue:unavailable"
            assert int(answer.headers["retry-after"]) >= 1
        for path in ("/metrics", "/v1/operations", "/v1/limits", "/openapi.json"):
            assert http.get(path).status_code == 200, path
        # The outage itself has a record of its own; its requests have none.
        assert [each for each in caplog.records if "request" in each.message] == []
    until(lambda: http.get(Q).status_code == 200)
    assert [each["key"] for each in poll(http, Q)["deliveries"]] == ["a"]


def test_an_outage_that_only_clients_in_python_meet_is_noticed(
    frail_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "RETRY", A_MOMENT)
    url = frail_server.create_database()
    service = Service(
        QueueSettings(url, SystemClock()),
        Access(None, required=False),
        Limits(),
        crons=False,
    )
    with served(service) as server, server.client() as http:
        server.call(service.counting.close)  # it would notice, too
        with Queue.open(server.url, "q", retry=RetryPolicy.never()) as queue:
            with frail_server.stopped():
                until(lambda: not offers(queue) and "available 0" in http.get("/metrics").text)
            until(lambda: offers(queue) and "available 1" in http.get("/metrics").text)
    frail_server.drop_database(url)


def offers(queue: Queue[Any]) -> bool:
    """Offer a message, and return whether that was possible."""
    try:
        queue.offer("a", 1)
    except StoreUnavailable:
        return False
    return True

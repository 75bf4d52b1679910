"""What `/metrics` says: of every queue, however it is used, and without waiting for the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import psycopg
import pytest

from duequeue import Message, Queue, StoreUnavailable
from duequeue.callbacks.pushing import PushSettings
from duequeue.contract.stage import until
from duequeue.server import Limits, Service, app_for
from duequeue.server.counting import Counting
from tests.callbacks.receiver import replies, running_receiver
from tests.fixtures.postgres import PostgresServer
from tests.fixtures.promtool import checked_metrics
from tests.fixtures.stores import fresh_url
from tests.server.served import Served, served
from tests.server.test_messages import offer
from tests.server.test_polling import poll, settle

HOUR = timedelta(hours=1)


@contextmanager
def scraped(service: Service) -> Iterator[tuple[Served, httpx.Client]]:
    """Serve, and close the client before the server."""
    with served(service) as server, server.client() as http:
        yield server, http


def lines_of(http: httpx.Client) -> list[str]:
    answer = http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return answer.text.splitlines()


def value_of(http: httpx.Client, series: str) -> float | None:
    """The value of one series, or None if there is none."""
    values = [each.removeprefix(f"{series} ") for each in lines_of(http)]
    return next((float(each) for each in values if each[:1].isdigit()), None)


def messages(queue: str, state: str, type_name: str = "json") -> str:
    return f'duequeue_messages{{queue="{queue}",type="{type_name}",state="{state}"}}'


@pytest.mark.parametrize("store", ["sqlite", "postgres", "mariadb", "redis"])
def test_queues_that_nobody_asked_for_are_counted(
    store: str, request: pytest.FixtureRequest
) -> None:
    url = fresh_url(store, request)
    with Queue.open(url, "mails") as mails, Queue.open(url, "reminders", codec=str) as reminders:
        mails.offer_batch([Message("a", 1), Message("b", 1), Message("later", 1, HOUR)])
        delivery = mails.try_poll()
        assert delivery is not None
        delivery.bury("enough")
        reminders.offer("a", "x")
    with scraped(app_for(url)) as (server, http):
        server.call(server.service.counting.count)
        found = {state: value_of(http, messages("mails", state)) for state in ("due", "future")}
        assert found == {"due": 1, "future": 1}
        assert value_of(http, messages("mails", "buried")) == 1
        assert value_of(http, messages("reminders", "due", "text")) == 1
        age = value_of(http, 'duequeue_messages_age_seconds{queue="mails",type="json"}')
        assert age is not None
        assert "mails" not in {each.name for each in server.service.queues.opened}


def test_the_first_count_comes_by_itself(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'q.db'}"
    with Queue.open(url, "mails") as mails:
        mails.offer("a", 1)
    with scraped(app_for(url)) as (_, http):
        until(lambda: value_of(http, messages("mails", "due")) == 1)


def test_the_last_counts_stay_while_the_database_is_down(frail_server: PostgresServer) -> None:
    url = frail_server.create_database()
    with scraped(app_for(url)) as (server, http):
        offer(http, "/v1/queues/mails", "a")
        server.call(server.service.counting.count)
        with frail_server.stopped("immediate"):
            with pytest.raises(StoreUnavailable):
                server.call(server.service.counting.count)
            assert value_of(http, messages("mails", "due")) == 1
            assert value_of(http, 'duequeue_offers_total{queue="mails",outcome="created"}') == 1
            failures = value_of(http, "duequeue_store_failures_total")
            assert failures is not None
            assert failures >= 1
        until(lambda: _counts(server))
        assert value_of(http, messages("mails", "due")) == 1
    frail_server.drop_database(url)


def test_a_queue_that_cannot_be_counted_in_time_is_named(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Queue.open(postgres_url, "mails") as mails:
        mails.offer("a", 1)
    monkeypatch.setattr("duequeue.server.counting.ROUND_SECONDS", 0.2)
    monkeypatch.setattr("duequeue.server.counting.REST", 0.0)
    with scraped(app_for(postgres_url)), psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE duequeue_message")
        until(lambda: "messages of 'mails|json' takes too long" in caplog.text)


def _counts(server: Served) -> bool:
    try:
        server.call(server.service.counting.count)
    except StoreUnavailable:
        return False
    return True


def test_clients_in_python_count(server: Served, http: httpx.Client, name: str) -> None:
    with Queue.open(server.url, name, max_attempts=1) as queue:
        outcomes = queue.offer_batch([Message(key, 1) for key in ("a", "b", "c", "d", "a")])
        assert len(outcomes) == 5
        a, b, c, d = queue.try_poll_many(4)
        queue.ack_many([a])
        assert not a.ack()
        b.release()
        c.bury("enough")
        assert queue.try_poll_many(4) == []  # b was delivered as often as it may be
        d.ack()
    queue_label = f'queue="{name}"'
    for series, expected in {
        f'duequeue_offers_total{{{queue_label},outcome="created"}}': 4,
        f'duequeue_offers_total{{{queue_label},outcome="ignored"}}': 1,
        f"duequeue_deliveries_total{{{queue_label}}}": 5,
        f"duequeue_lateness_seconds_count{{{queue_label}}}": 4,  # not the second attempt at b
        f'duequeue_settlements_total{{{queue_label},outcome="acked"}}': 2,
        f'duequeue_settlements_total{{{queue_label},outcome="lost"}}': 1,
        f'duequeue_settlements_total{{{queue_label},outcome="released"}}': 1,
        f'duequeue_settlements_total{{{queue_label},outcome="buried"}}': 2,
        f'duequeue_burials_total{{{queue_label},cause="request"}}': 1,
        f'duequeue_burials_total{{{queue_label},cause="max_attempts"}}': 1,
    }.items():
        assert value_of(http, series) == expected, series


def test_settlements_over_http_count(http: httpx.Client, path: str, name: str) -> None:
    for key in "ab":
        offer(http, path, key)
    first, second = (each["token"] for each in poll(http, path, limit=2)["deliveries"])
    settle(http, path, ack=[first], release=[{"token": second}])
    settle(http, path, ack=[first])
    for outcome in ("acked", "released", "lost"):
        series = f'duequeue_settlements_total{{queue="{name}",outcome="{outcome}"}}'
        assert value_of(http, series) == 1, outcome


def test_callbacks_count(tmp_path: Path) -> None:
    service = app_for(f"sqlite:///{tmp_path / 'q.db'}", push=PushSettings())
    with running_receiver() as receiver, scraped(service) as (_, http):
        target = receiver.will("/", replies(500), replies(200))
        about = {"queue": "q", "url": target, "backoff": {"first": "1ms", "longest": "1ms"}}
        assert http.put("/v1/endpoints/shop", json=about).status_code == 200
        offer(http, "/v1/queues/q", "a")
        acked = 'duequeue_settlements_total{queue="q",outcome="acked"}'
        until(lambda: value_of(http, acked) == 1)
        assert value_of(http, 'duequeue_deliveries_total{queue="q"}') == 2
        assert value_of(http, 'duequeue_lateness_seconds_count{queue="q"}') == 1
        calls = 'duequeue_endpoint_calls_total{endpoint="shop",result='
        assert value_of(http, f'{calls}"accepted"}}') == 1
        assert value_of(http, f'{calls}"failed"}}') == 1
        state = 'duequeue_endpoint_state{endpoint="shop",state='
        assert value_of(http, f'{state}"active"}}') == 1
        assert value_of(http, f'{state}"open"}}') == 0
        assert checked_metrics(http.get("/metrics").text) == ""


def test_promtool_finds_nothing(postgres_url: str) -> None:
    with scraped(app_for(postgres_url)) as (server, http):
        offer(http, "/v1/queues/mails", "a")
        token = poll(http, "/v1/queues/mails")["deliveries"][0]["token"]
        settle(http, "/v1/queues/mails", bury=[{"token": token, "reason": 'a "reason"'}])
        server.call(server.service.counting.count)
        assert value_of(http, "process_open_fds")
        assert value_of(http, "process_resident_memory_bytes")
        text = http.get("/metrics").text
        assert "duequeue_pool_size{" in text
        assert checked_metrics(text) == ""
        assert checked_metrics(text.replace("# HELP duequeue_waiters", "# ")) != ""


def test_the_number_of_series_is_bounded(tmp_path: Path) -> None:
    service = app_for(f"sqlite:///{tmp_path / 'q.db'}", limits=Limits(open_queues=2))
    service.counting = Counting(service.queues, most_queues=2)
    with scraped(service) as (server, http):
        for name in "abcd":
            offer(http, f"/v1/queues/{name}", "x")
        server.call(server.service.counting.count)
        assert value_of(http, messages("a", "due")) == 1
        assert value_of(http, messages("other", "due", "other")) == 2
        assert value_of(http, messages("d", "due")) is None
        offered = [each for each in lines_of(http) if each.startswith("duequeue_offers_total")]
        assert len(offered) <= 3
        for method in ("BREW", "PROPFIND"):
            http.request(method, "/healthz")
        assert "PROPFIND" not in http.get("/metrics").text


def test_counters_stay_while_a_payload_type_of_the_queue_is_open(tmp_path: Path) -> None:
    service = app_for(f"sqlite:///{tmp_path / 'q.db'}", limits=Limits(open_queues=2))
    offers = 'duequeue_offers_total{queue="mails",outcome="created"}'
    with scraped(service) as (_, http):
        for type_name, body in (("json", "1"), ("text", "x")):
            path = f"/v1/queues/mails/messages/{type_name}?type={type_name}"
            headers = {"Content-Type": "application/json" if type_name == "json" else "text/plain"}
            assert http.put(path, content=body, headers=headers).status_code == 200
        offer(http, "/v1/queues/other", "a")
        opened = {(each.name, each.type_name) for each in service.queues.opened}
        assert opened == {("mails", "text"), ("other", "json")}
        assert value_of(http, offers) == 2
        offer(http, "/v1/queues/third", "a")
        assert value_of(http, offers) is None

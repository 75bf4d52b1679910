"""Processes that share a database wake each other through a Redis that the URL names."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from urllib.parse import quote

import pytest

from duequeue import Queue
from duequeue.backends import backend_for
from duequeue.contract.faces import Face
from duequeue.contract.phrases import MINUTE, PATIENCE, in_background
from duequeue.port.alerts import Answered
from duequeue.stores.mailbox import MailboxAlerts
from duequeue.stores.redis_client.settings import RedisSettings
from duequeue.stores.redis_client.wire import PublishedWire
from tests.fixtures.redis_cluster import RedisCluster
from tests.fixtures.redis_server import RedisServer, wait_until
from tests.fixtures.stores import fresh_url
from tests.race.crew import Hand
from tests.redis.test_cluster import offer_to

NOBODY_LISTENS = "redis://:secret@127.0.0.1:1/0"


@pytest.fixture
def hand() -> Iterator[Hand]:
    hand = Hand()
    yield hand
    hand.end()


@pytest.fixture(params=["postgres", "mariadb"])
def url(request: pytest.FixtureRequest) -> str:
    """A database whose own wake-ups are not used."""
    url = fresh_url(request.param, request)
    return f"{url}{'&' if '?' in url else '?'}" + (
        "pooler=transaction&" if request.param == "postgres" else ""
    )


def test_a_poll_is_woken_by_another_process(
    face: Face, url: str, redis_server: RedisServer, redis_url: str, hand: Hand
) -> None:
    named = f"{url}alerts={quote(redis_url, safe='')}"
    with face.open(named, "orders", poll_interval=10 * MINUTE) as queue:
        for key in "abc":
            polling = in_background(queue.poll)
            hand.start(partial(offer_to, named, "orders", key))
            assert hand.outcome().error is None
            delivery = polling.result(PATIENCE)
            assert delivery is not None
            assert delivery.ack()
    channel = f"dq:alerts:{redis_url.rpartition('/')[2]}"
    wait_until(
        lambda: _subscribers(redis_server, channel) == 0, "the line is closed with the queue"
    )


def answer_from(url: str) -> None:
    """Answer a message, in a process of its own."""
    with Queue.open(url, "orders") as queue:
        delivery = queue.try_poll()
        assert delivery is not None
        assert delivery.ack(response=delivery.key)


def test_a_response_wakes_another_process(face: Face, url: str, redis_url: str, hand: Hand) -> None:
    named = f"{url}alerts={quote(redis_url, safe='')}"
    with face.open(named, "orders", poll_interval=10 * MINUTE) as queue:
        for key in ("a", "ü b", "c"):
            queue.offer(key, 1)
            waiting = in_background(partial(queue.response, key))
            hand.start(partial(answer_from, named))
            assert hand.outcome().error is None
            response = waiting.result(PATIENCE)
            assert response is not None
            assert response.value == key


def _subscribers(server: RedisServer, channel: str) -> int:
    (_, count) = server.ask("PUBSUB", "NUMSUB", channel)
    return int(count)


def alerts_of_orders(url: str) -> MailboxAlerts:
    return MailboxAlerts(PublishedWire(RedisSettings.from_url(url)), "orders|json", print)


def test_another_node_of_a_cluster_is_tried_if_one_cannot_be_reached(
    redis_cluster: RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duequeue.process.line.RETRY_EVERY", 0.01)
    node, *_ = redis_cluster.primaries
    url = f"redis+cluster://:{node.password}@127.0.0.1:2,127.0.0.1:{node.port}"
    alerts = alerts_of_orders(url)
    try:
        alerts.listen(1.0)
        numbers = partial(node.ask, "PUBSUB", "NUMSUB", "dq:alerts:0")
        wait_until(lambda: numbers()[1] == 1, "the node that can be reached is heard")
    finally:
        alerts.close()


def test_a_note_that_is_lost_with_its_line_is_sent_again(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duequeue.process.line.RETRY_EVERY", 0.01)
    alerts = alerts_of_orders(redis_server.url(8))
    notes: list[bytes] = []
    with redis_server.client() as client, client.pubsub(ignore_subscribe_messages=True) as hearing:
        hearing.subscribe("dq:alerts:8")

        def is_heard(end: bytes) -> bool:
            if (found := hearing.get_message()) is not None:
                notes.append(found["data"])
            return any(note.endswith(end) for note in notes)

        try:
            for number in range(3):
                alerts.notify(number)
                alerts.notify(Answered(f"key {number}"))
                wait_until(partial(is_heard, b" %d orders|json" % number), "the due time is heard")
                wait_until(partial(is_heard, b"orders|jsonkey %d" % number), "the key is heard")
                redis_server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        finally:
            alerts.close()


def test_without_redis_the_regular_look_finds_messages(face: Face, url: str, hand: Hand) -> None:
    named = f"{url}alerts={quote(NOBODY_LISTENS, safe='')}"
    with face.open(named, "orders", poll_interval=timedelta(milliseconds=50)) as queue:
        polling = in_background(queue.poll)
        hand.start(partial(offer_to, named, "orders", "a"))
        assert hand.outcome().error is None
        delivery = polling.result(PATIENCE)
        assert delivery is not None
        assert delivery.ack()


@pytest.mark.parametrize("scheme", ["postgresql", "mariadb"])
def test_a_mistake_is_named_and_no_password_is_shown(scheme: str) -> None:
    wrong = quote("redis://:secret@host/x", safe="")
    with pytest.raises(ValueError, match="alerts in the url must be the url of a Redis") as caught:
        backend_for(f"{scheme}://host/app?alerts={wrong}")
    assert "secret" not in str(caught.value)
    fine = backend_for(f"{scheme}://host/app?alerts={quote(NOBODY_LISTENS, safe='')}")
    assert "secret" not in f"{fine!r} {fine.address} {fine.place}"


def test_a_line_that_does_not_work_is_logged_once(
    face: Face, postgres_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duequeue.process.line.RETRY_EVERY", 0.01)
    named = f"{postgres_url}?alerts={quote(NOBODY_LISTENS, safe='')}"
    with caplog.at_level(logging.WARNING, "duequeue.redis"), face.open(named, "orders") as queue:
        polling = in_background(partial(queue.poll, timeout=MINUTE))
        wait_until(lambda: bool(caplog.messages), "the outage is logged")
        queue.offer("a", 1)
        assert polling.result(PATIENCE) is not None
    (warning,) = caplog.messages
    assert "wake-ups between processes do not work" in warning
    assert "secret" not in warning

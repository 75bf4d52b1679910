"""What the page about Redis and MySQL together says about tables, and about a Redis that fails."""

import re
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from urllib.parse import quote

import pytest

from duequeue import Queue
from duequeue.contract.faces import Face
from duequeue.contract.phrases import MINUTE, PATIENCE, in_background
from tests.docs.pages import DOCS
from tests.fixtures.mariadb import connected
from tests.fixtures.redis_server import RedisServer, wait_until
from tests.race.crew import Hand
from tests.redis.test_cluster import offer_to

PAGE = DOCS / "guides" / "redis-and-mysql.md"
OFTEN, RARELY = timedelta(milliseconds=50), 10 * MINUTE
NAMES = """
    SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()
    UNION SELECT index_name FROM information_schema.statistics WHERE table_schema = DATABASE()
"""


@pytest.fixture
def hand() -> Iterator[Hand]:
    hand = Hand()
    yield hand
    hand.end()


@pytest.fixture
def line(frail_redis: RedisServer) -> str:
    """A database of a Redis that may fail."""
    return frail_redis.fresh_url()


@pytest.fixture
def url(ready_mariadb: str, line: str) -> str:
    return f"{ready_mariadb}?alerts={quote(line, safe='')}"


def test_each_part_is_where_the_page_says(ready_mariadb: str) -> None:
    named = set(re.findall(r"`(duequeue_\w+)`", PAGE.read_text("utf-8")))
    with connected(ready_mariadb) as cursor:
        cursor.execute(NAMES)
        there = {name for (name,) in cursor.fetchall()}
    assert len(named) == 4
    assert named <= there


def test_nothing_waits_for_a_redis_that_does_not_answer(
    face: Face, url: str, frail_redis: RedisServer, hand: Hand
) -> None:
    with face.open(url, "orders", poll_interval=OFTEN) as queue, frail_redis.paused():
        polling = in_background(queue.poll)
        hand.start(partial(offer_to, url, "orders", "a"))
        delivery = polling.result(PATIENCE)
        assert delivery is not None
        assert delivery.ack()
    assert hand.outcome().error is None


def test_a_redis_that_starts_again_empty_wakes_processes_again(
    face: Face,
    url: str,
    line: str,
    frail_redis: RedisServer,
    hand: Hand,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("duequeue.process.line.RETRY_EVERY", 0.01)
    channel = f"dq:alerts:{line.rpartition('/')[2]}"
    with face.open(url, "orders", poll_interval=RARELY) as queue:
        queue.offer("kept", 1, due=MINUTE)
        polling = in_background(queue.poll)
        frail_redis.kill()
        frail_redis.start()
        frail_redis.ask("FLUSHALL")
        heard = partial(frail_redis.ask, "PUBSUB", "NUMSUB", channel)
        wait_until(lambda: int(heard()[1]) == 1, "the process listens again")
        hand.start(partial(offer_to, url, "orders", "a"))
        assert hand.outcome().error is None
        delivery = polling.result(PATIENCE)
        assert delivery is not None
        assert delivery.ack()
        assert queue.contains("kept")


def test_redis_keeps_nothing(url: str, line: str, frail_redis: RedisServer) -> None:
    with Queue.open(url, "orders") as queue:
        queue.offer("a", 1)
        with queue.consume(lambda delivery: delivery.payload, respond=True):
            assert queue.response("a", timeout=PATIENCE) is not None
    assert frail_redis.ask("DBSIZE", database=int(line.rpartition("/")[2])) == 0

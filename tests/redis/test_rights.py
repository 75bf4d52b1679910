"""A user that has only the rights which the guide names can do everything."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from duequeue import ManualClock, Message, OfferOutcome, Queue, StoreError
from duequeue.contract.phrases import DAY, HOUR, SECOND
from duequeue.history import History
from tests.fixtures.redis_sentinel import Watched
from tests.fixtures.redis_server import RedisServer

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "redis.md"
ACL = re.compile(r"ACL SETUSER duequeue on >password (.*?)```", re.DOTALL)


def rights_of_the_guide() -> list[str]:
    found = ACL.search(GUIDE.read_text("utf-8"))
    assert found is not None
    return found[1].split()


@pytest.fixture
def limited_url(redis_server: RedisServer, redis_url: str) -> Iterator[str]:
    """The URL of that user."""
    rights = rights_of_the_guide()
    redis_server.ask("ACL", "SETUSER", "duequeue", "on", ">secret", *rights)
    yield redis_url.replace(f":{redis_server.password}@", "duequeue:secret@")
    redis_server.ask("ACL", "DELUSER", "duequeue")


def test_everything_can_be_done(limited_url: str) -> None:
    with Queue.open(limited_url, "orders", history=True, poll_interval=SECOND / 10) as queue:
        queue.offer_batch([Message(f"key-{number}", "x" * 70_000) for number in range(5)])
        queue.offer("key-1", 2)
        queue.offer("later", 1, DAY)
        first, second, third, *others = queue.try_poll_many(10)
        assert first.bury("why")
        assert second.extend()
        assert second.release()
        assert third.ack()
        assert queue.ack_many(others) == len(others)
        assert queue.revive(first.key)
        assert queue.run_now("later")
        assert len(queue.list().messages) == 3
        assert queue.stats().total == 3
        assert queue.read("later") is not None
        queue.cron.install_periodic_tick("tick", HOUR, 1).close()
        assert queue.cron.pause("tick")
        assert queue.cron.list()
        assert queue.drop("later")
        assert queue.history()
        assert queue.drop_all("orders") == 2
        queue.offer("answered", 1)
        answered = queue.try_poll()
        assert answered is not None
        assert answered.ack(response=1)
        assert queue.response("answered") is not None
        assert queue.forget_response("answered")
        assert queue.poll(SECOND / 5) is None
        with History.open(limited_url) as history:
            (day, _), *_ = history.days()
            assert history.remove_rows(day, history.day_bounds(day))


def test_expired_messages_can_be_dropped(limited_url: str, clock: ManualClock) -> None:
    with Queue.open(limited_url, "orders", clock=clock) as queue:
        queue.offer_batch([Message(key, 1, expires=SECOND) for key in "abc"])
        clock.advance(SECOND)
        assert queue.try_poll() is None
        assert queue.stats().total == 0


def test_sentinel_needs_one_right_more(watched_redis: Watched) -> None:
    rights = rights_of_the_guide()
    primary = watched_redis.primary
    url = watched_redis.url().replace(f":{primary.password}@", "duequeue:secret@")
    primary.ask("ACL", "SETUSER", "duequeue", "on", ">secret", *rights)
    with pytest.raises(StoreError, match="'role'"):
        Queue.open(url, "orders")
    primary.ask("ACL", "SETUSER", "duequeue", "+role")
    with Queue.open(url, "orders") as queue:
        assert queue.offer("a", 1) is OfferOutcome.CREATED


def test_nothing_else_can_be_done(limited_url: str, redis_server: RedisServer) -> None:
    redis_server.ask("ACL", "SETUSER", "duequeue", "-hset")
    with pytest.raises(StoreError, match=r"(?i)permission"):
        Queue.open(limited_url, "orders")

"""A user that has only the rights which the guide names can do everything."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from duequeue import ManualClock, Message, OfferOutcome, Queue, StoreError
from duequeue.bulk.port import (
    ID,
    KEY,
    BatchId,
    Conditions,
    OfferCounts,
    Reach,
    SnapshotQuery,
    StageId,
)
from duequeue.contract.phrases import DAY, HOUR, SECOND
from duequeue.history import History
from duequeue.port.store import Burial, Lease, Release
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import parse
from tests.fixtures.redis_sentinel import Watched
from tests.fixtures.redis_server import RedisServer
from tests.redis.test_bulk import ack, batch_of, ingest, lease, merge, read, stage

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "redis.md"
ACL = re.compile(r"ACL SETUSER duequeue on >password (.*?)```", re.DOTALL)
SPARKS = re.compile(r"Spark also needs\s+`(.*?)`", re.DOTALL)


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


def test_spark_can_do_everything_with_the_rights_that_it_needs(
    limited_url: str, redis_server: RedisServer
) -> None:
    found = SPARKS.search(GUIDE.read_text("utf-8"))
    assert found is not None
    redis_server.ask("ACL", "SETUSER", "duequeue", *found[1].split())
    with OpenBulk(parse({"url": limited_url, "queue": "orders", "history": "true"})) as bulk:
        ingest(bulk, batch_of("a", "b"))
        for part in (1, 2):
            stage(bulk, batch_of("a", "c", "d"), part)
        assert merge(bulk, {1: 3, 2: 3}) == OfferCounts(created=2, ignored=4)
        stage(bulk, batch_of("given up"), 1, StageId(7, 4))
        bulk.run(partial(bulk.store.discard, StageId(7, 4), [1]))
        bulk.run(partial(bulk.store.record, "run", OfferCounts(1), bulk.now()))
        assert bulk.run(partial(bulk.store.take_record, "run")) == OfferCounts(1)
        assert bulk.run(partial(bulk.store.stream_counts, "app")) is not None
        (whole,) = bulk.plan(1, 1.0)
        for conditions in (Conditions(), Conditions(keys=["a", "b", "c", "d"])):
            query = SnapshotQuery(conditions=conditions)
            assert sum(len(page[KEY]) for page in bulk.snapshots().read(whole, 9, query)) == 4
        bulk.run(partial(bulk.store.forget_stale, 0))
        assert bulk.run(partial(bulk.store.backlog, bulk.now(), bulk.now(), 9)).messages == 4
        assert lease(bulk, 1, reach=Reach(bulk.now(), bulk.run(bulk.store.last_id))) is not None
        batch, rows = BatchId("me", 1), read(bulk, 1, 0)
        first, second, *_ = (Lease(row[ID], 0, 0, row[KEY]) for row in rows)
        bulk.run(partial(bulk.store.note_handled, batch, {row[ID]: 1 for row in rows}))
        assert bulk.run(partial(bulk.store.release, batch, [Release(first, 0)]))
        assert bulk.run(partial(bulk.store.bury, batch, [Burial(second, 1, "why")], bulk.now()))
        assert bulk.run(partial(bulk.store.extend, "me", bulk.now() + 60_000)) == 2
        assert ack(bulk, 1) == 2
        bulk.announce(bulk.now())


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

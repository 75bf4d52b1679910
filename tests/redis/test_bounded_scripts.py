"""No script runs for long, because nobody else is served meanwhile."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from duequeue import Message, Queue, State, StoreError
from duequeue.backends import backend_for
from duequeue.history import History
from duequeue.port.listing import Buckets, BurialId, BurialSelection
from duequeue.stores.redis.commands import MOST_AT_ONCE
from tests.fixtures.redis_server import RedisServer, calls_of, scripts_run
from tests.redis.waiting import KIND

MANY = 2 * MOST_AT_ONCE + 1
KEYS, LATER = 150, 40


def test_rows_of_the_history_are_removed_a_thousand_at_a_time(frail_redis: RedisServer) -> None:
    url = frail_redis.fresh_url()
    with (
        Queue.open(url, "orders", history=True) as queue,
        Queue.open(url, "invoices", history=True) as other,
        History.open(url) as history,
    ):
        for each in (queue, other):
            each.offer_batch([Message(str(number), 1) for number in range(MANY)])
            assert each.drop_all(each.name) == MANY
        (day, _), *_ = history.days()
        bounds = history.day_bounds(day)
        assert bounds.rows == 2 * MANY
        queue.offer("meanwhile", 1)
        queue.drop("meanwhile")
        assert not history.remove_rows(day, bounds._replace(rows=2 * MANY - 1))
        frail_redis.ask("CONFIG", "RESETSTAT")
        assert history.remove_rows(day, bounds)
        assert calls_of(frail_redis, "xrange") == 12  # three for each queue, twice
        assert history.day_bounds(day).rows == 1
        assert [kind for _, kind in history.days()] == [KIND]


def test_revival_reads_few_burials_in_each_script(frail_redis: RedisServer) -> None:
    url = frail_redis.fresh_url()
    with Queue.open(url, "orders") as queue:
        bury_all(queue, "wanted")
        for _ in range(LATER):
            bury_all(queue, "other")
        session, store = store_of(url)
        until = session.run(store.burials.last)
        selection = BurialSelection(MOST_AT_ONCE, BurialId(0, 0), until, "wanted")
        frail_redis.ask("CONFIG", "RESETSTAT")
        revived, _ = session.run(partial(store.burials.revive_all, selection, 0, 0))
        session.close()
        assert revived == KEYS
        assert calls_of(frail_redis, "evalsha") > KEYS * LATER / MOST_AT_ONCE
        stats = queue.stats()
        assert (stats.due, stats.buried) == (KEYS, KEYS * LATER)


def store_of(url: str) -> tuple[Any, Any]:
    backend: Any = backend_for(url)
    session = backend.session()
    opening = partial(backend.open_store, KIND, 1, migrate=True, history=False)
    return session, session.run(opening)


def bury_all(queue: Queue[int], reason: str) -> None:
    queue.offer_batch([Message(str(number), 1) for number in range(KEYS)])
    for delivery in queue.try_poll_many(KEYS):
        delivery.bury(reason)


@pytest.mark.parametrize("length", [0, -1])
def test_buckets_without_a_length_are_refused(frail_redis: RedisServer, length: int) -> None:
    url = frail_redis.fresh_url()
    with Queue.open(url, "orders") as queue:
        queue.offer("a", 1)
    session, store = store_of(url)
    with pytest.raises(StoreError, match="positive length"):
        session.run(partial(store.forecast, 0, Buckets(0, length, 10**15)), 5.0)
    session.close()


def test_lists_look_at_a_thousand_leases_in_each_script(frail_redis: RedisServer) -> None:
    url = frail_redis.fresh_url()
    with Queue.open(url, "orders") as queue:
        queue.offer_batch([Message(f"{n:05}", 1, timedelta(milliseconds=-n)) for n in range(MANY)])
        queue.try_poll_many(MANY - 1)  # the first stays free
        queue.offer_batch([Message(f"free-{n}", 1) for n in range(3)])
        frail_redis.ask("CONFIG", "RESETSTAT")
        page = queue.list(limit=10)
        assert [each.key for each in page.messages] == [f"{MANY - 1 - n:05}" for n in range(10)]
        # One finds that there are too many, three look at the leases, and one reads the messages.
        assert scripts_run(frail_redis) == 5
        assert list_all(queue) == [
            *[f"{MANY - 1 - n:05}" for n in range(MANY)],
            *[f"free-{n}" for n in range(3)],
        ]
        leased = list_all(queue, state=State.LEASED, prefix="000")
        assert leased == [f"{99 - n:05}" for n in range(99)]


def list_all(queue: Queue[int], **which: Any) -> list[str]:
    """Return the keys of all pages."""
    found: list[str] = []
    page = queue.list(limit=700, **which)
    while True:
        found += [each.key for each in page.messages]
        if page.next is None:
            return found
        page = queue.list(limit=700, after=page.next, **which)


def test_schedules_count_a_thousand_leases_in_each_script(frail_redis: RedisServer) -> None:
    url = frail_redis.fresh_url()
    with Queue.open(url, "orders") as queue:
        queue.offer_batch([Message(str(number), 1) for number in range(MANY)])
        queue.try_poll_many(MANY - 1)
    backend: Any = backend_for(url)
    session = backend.session()
    history = session.run(partial(backend.open_history, migrate=True))
    now = 2_000_000_000_000
    frail_redis.ask("CONFIG", "RESETSTAT")
    (hour,) = session.run(partial(history.scheduled, now, now + 1))
    assert (hour.messages, hour.overdue) == (MANY, MANY)
    assert scripts_run(frail_redis) == 5  # the kinds, what is free, and three for the leases
    session.close()

"""Producers of the same keys at the same time: nothing is lost, each is told the truth."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from random import Random

import psycopg
import pytest

from duequeue import Message, OfferOutcome, RetryPolicy
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import PATIENCE, in_background, snapshot
from tests.race.conftest import OpenRival
from tests.race.crew import Crew
from tests.race.parts import offer_new
from tests.race.together import together
from tests.race.watching import WAITING_FOR_A_LOCK, until_one

CREATED, UPDATED, IGNORED = OfferOutcome.CREATED, OfferOutcome.UPDATED, OfferOutcome.IGNORED

KEYS = [f"order-{number:04}" for number in range(1200)]


def overlapping(producers: int) -> list[list[str]]:
    """A batch for each producer: most of the keys, in an order of its own."""
    return [Random(seed).sample(KEYS, 900) for seed in range(producers)]  # noqa: S311 - no secret


def assert_created_once(
    batches: Sequence[Sequence[str]], outcomes: Sequence[Sequence[OfferOutcome]]
) -> dict[str, str]:
    """Every key was created by one producer; return whose it is."""
    creators: dict[str, str] = {}
    for number, (keys, told) in enumerate(zip(batches, outcomes, strict=True)):
        for key, outcome in zip(keys, told, strict=True):
            assert outcome in {CREATED, IGNORED}
            if outcome is CREATED:
                assert key not in creators
                creators[key] = f"producer {number}"
    assert set(creators) == {key for keys in batches for key in keys}
    return creators


def test_insert_only_batches_of_threads(open_rival: OpenRival) -> None:
    queues = [open_rival() for _ in range(4)]
    batches = overlapping(4)
    offers = [
        partial(
            queue.offer_batch,
            [Message(key, f"producer {number}", replace=False) for key in keys],
        )
        for number, (queue, keys) in enumerate(zip(queues, batches, strict=True))
    ]
    creators = assert_created_once(batches, together(*offers))
    stored = {one.key: one.payload for one in queues[0].try_poll_many(len(KEYS) + 1)}
    assert stored == creators


def test_insert_only_batches_of_processes(
    open_rival: OpenRival, store_url: str, crew: Crew
) -> None:
    queue = open_rival()
    batches = overlapping(4)
    outcomes = crew.together(
        [
            partial(offer_new, store_url, keys, f"producer {number}")
            for number, keys in enumerate(batches)
        ]
    )
    creators = assert_created_once(batches, outcomes)
    assert {one.key: one.payload for one in queue.try_poll_many(len(KEYS) + 1)} == creators


def test_batches_in_opposite_orders_do_not_deadlock(open_rival: OpenRival, store: str) -> None:
    # SQLite may have to make a writer wait; PostgreSQL must not need even one second try.
    retry = RetryPolicy.never() if store == "postgres" else None
    queues = [open_rival(retry=retry) for _ in range(4)]
    keys = KEYS[:300]
    for lap in range(8):
        batches = [
            [Message(key, [lap, number], START) for key in keys[:: (-1) ** number]]
            for number in range(4)
        ]
        offers = [
            partial(queue.offer_batch, batch) for queue, batch in zip(queues, batches, strict=True)
        ]
        told = Counter[tuple[str, OfferOutcome]]()
        for batch, outcomes in zip(batches, together(*offers), strict=True):
            told.update(zip([message.key for message in batch], outcomes, strict=True))
        created = 1 if lap == 0 else 0
        assert {told[key, CREATED] for key in keys} == {created}
        assert {told[key, UPDATED] for key in keys} == {4 - created}
        assert {snapshot(queues[0], key).payload[0] for key in keys[::50]} == {lap}


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_a_deadlock_is_undone_and_tried_again(open_rival: OpenRival, store_url: str) -> None:
    queue = open_rival(f"{store_url}?options=-c%20deadlock_timeout%3D300ms")
    queue.offer_batch([Message("a", 0), Message("b", 0)])
    with psycopg.connect(store_url) as rival, psycopg.connect(store_url, autocommit=True) as watch:
        rival.execute("SET deadlock_timeout = '1h'")
        rival.execute("SELECT 1 FROM duequeue_message WHERE key = 'b' FOR UPDATE")
        # A key for the second time takes a second statement, and so a transaction.
        batch = [Message("a", 1), Message("a", 2), Message("b", 3)]
        offering = in_background(partial(queue.offer_batch, batch))
        until_one(watch, WAITING_FOR_A_LOCK)
        rival.execute("SELECT 1 FROM duequeue_message WHERE key = 'a' FOR UPDATE")
        rival.execute("UPDATE duequeue_message SET attempt = 9")
        rival.commit()
        assert offering.result(PATIENCE) == [UPDATED, UPDATED, UPDATED]
    assert [snapshot(queue, key).payload for key in "ab"] == [2, 3]

"""Offers that overlap share a commit, and nothing else: no error, no wait, no cancellation."""

import asyncio
from collections import Counter
from functools import partial
from typing import Any

import psycopg
import pytest

from duequeue import AsyncQueue, ManualClock, Message, OfferOutcome, Queue
from duequeue.contract.phrases import DAY, PATIENCE, in_background
from tests.race.conftest import OpenRival
from tests.race.together import together
from tests.sql.wire import Wire

CALLERS = 16
ROUNDS = 30
LOCK = "SELECT FROM duequeue_message WHERE key = 'held' FOR UPDATE"


def test_each_caller_gets_its_own_outcome(open_rival: OpenRival) -> None:
    queue = open_rival()
    queue.offer_batch([Message(f"old-{number}", number, DAY) for number in range(CALLERS)])

    def offer_all(caller: int) -> list[OfferOutcome]:
        return [
            outcome
            for round_ in range(ROUNDS)
            for outcome in (
                queue.offer(f"{caller}-{round_}", round_, DAY),
                queue.offer(f"{caller}-{round_}", round_, DAY),
                queue.offer(f"old-{caller}", -round_ - 1, DAY),
            )
        ]

    each = [OfferOutcome.CREATED, OfferOutcome.IGNORED, OfferOutcome.UPDATED] * ROUNDS
    assert together(*(partial(offer_all, caller) for caller in range(CALLERS))) == [each] * CALLERS
    assert queue.stats().total == CALLERS * (ROUNDS + 1)


def test_of_many_who_offer_one_key_one_creates_it(open_rival: OpenRival) -> None:
    queue = open_rival()
    for round_ in range(ROUNDS):
        offer = partial(queue.offer, f"order-{round_}", "same", DAY)
        outcomes = Counter(together(*[offer] * CALLERS))
        assert outcomes == {OfferOutcome.CREATED: 1, OfferOutcome.IGNORED: CALLERS - 1}


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_they_share_commits(store_url: str, clock: ManualClock) -> None:
    with Wire(store_url) as wire, Queue.open(wire.url, "orders", clock=clock) as queue:

        def offer_all(caller: int) -> None:
            for round_ in range(ROUNDS):
                queue.offer(f"{caller}-{round_}", round_, DAY)

        callers = [partial(offer_all, caller) for caller in range(CALLERS)]
        traffic = wire.traffic_of(lambda: together(*callers))
        assert queue.stats().total == CALLERS * ROUNDS
    assert 0 < traffic.transactions < CALLERS * ROUNDS / 2


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_nobody_waits_for_a_row_that_another_one_needs(
    open_rival: OpenRival, store_url: str
) -> None:
    queue = open_rival()
    queue.offer("held", 1, DAY)
    with psycopg.connect(store_url) as application:
        application.execute(LOCK)
        held = in_background(partial(queue.offer, "held", 2, DAY))
        others = [partial(queue.offer, f"free-{n}", 1, DAY) for n in range(CALLERS)]
        assert together(*others) == [OfferOutcome.CREATED] * CALLERS
        assert not held.done()
        application.rollback()
        assert held.result(PATIENCE) is OfferOutcome.UPDATED


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
def test_a_cancelled_offer_takes_nobody_along(store_url: str, clock: ManualClock) -> None:
    async def scenario() -> None:
        queue: AsyncQueue[Any]
        async with await AsyncQueue.open(store_url, "orders", clock=clock) as queue:
            for round_ in range(ROUNDS):
                offers = [
                    asyncio.create_task(queue.offer(f"{round_}-{n}", n, DAY))
                    for n in range(CALLERS)
                ]
                for _ in range(round_ % 7):
                    await asyncio.sleep(0)
                for offer in offers[:: 1 + round_ % 3]:
                    offer.cancel()
                outcomes = await asyncio.gather(*offers, return_exceptions=True)
                for n, outcome in enumerate(outcomes):
                    assert isinstance(outcome, OfferOutcome | asyncio.CancelledError), outcome
                    if isinstance(outcome, OfferOutcome):
                        assert await queue.contains(f"{round_}-{n}")

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))

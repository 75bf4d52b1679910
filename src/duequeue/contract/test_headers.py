"""Headers: small string maps that travel beside a payload and take no part in equality."""

from typing import Any

import pytest

from duequeue import ManualClock, Message, OfferOutcome
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import DEFAULT_LEASE, claim, everything_in, snapshot

TRACE = {"traceparent": "00-1-2-01", "\N{FIRE}": "a\0b 'quoted' \\ %s", "": ""}


def test_headers_travel_with_every_delivery(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1, headers=TRACE)
    assert snapshot(queue, "a").headers == TRACE
    assert claim(queue).headers == TRACE
    clock.advance(DEFAULT_LEASE)
    delivery = claim(queue)
    assert (delivery.attempt, delivery.headers) == (2, TRACE)


def test_headers_travel_in_batches(queue: QueueFace) -> None:
    queue.offer_batch([Message("a", 1, headers=TRACE), Message("b", 1), Message("c", 1)])
    assert [delivery.headers for delivery in queue.try_poll_many(3)] == [TRACE, {}, {}]


def test_headers_outlive_a_burial(queue: QueueFace) -> None:
    queue.offer("a", 1, headers=TRACE)
    assert claim(queue).bury("enough")
    assert queue.buried(1)[0].headers == TRACE
    assert snapshot(queue, "a").headers == TRACE
    assert queue.revive("a")
    assert claim(queue).headers == TRACE


def test_no_headers_are_an_empty_map(queue: QueueFace) -> None:
    queue.offer("a", 1)
    queue.offer("b", 1, headers={})
    assert [delivery.headers for delivery in queue.try_poll_many(2)] == [{}, {}]


def test_an_equal_offer_with_other_headers_is_still_ignored(queue: QueueFace) -> None:
    queue.offer("a", 1, START, headers={"trace": "first"})
    holder = claim(queue)
    before = everything_in(queue, "a")
    assert queue.offer("a", 1, START, headers={"trace": "second"}) is OfferOutcome.IGNORED
    assert everything_in(queue, "a") == before
    assert holder.ack()


def test_an_update_replaces_the_headers(queue: QueueFace) -> None:
    queue.offer("a", 1, START, headers={"trace": "first"})
    queue.offer("a", 2, START, headers={"trace": "second"})
    assert snapshot(queue, "a").headers == {"trace": "second"}
    queue.offer_batch([Message("a", 3, START)])
    assert snapshot(queue, "a").headers == {}


@pytest.mark.argument_checks
def test_headers_are_few_and_text(queue: QueueFace) -> None:
    wrong: list[Any] = [{"a": 1}, {1: "a"}, {"a": "x" * 9000}, {"a": "\ud800"}, ["a"], "ab"]
    wrong += [[], (), "", 0, False]  # of which nothing is kept, but which are not mappings either
    for headers in wrong:
        with pytest.raises((TypeError, ValueError), match="headers"):
            queue.offer("a", 1, headers=headers)
        with pytest.raises((TypeError, ValueError), match="headers"):
            queue.offer_batch([Message("a", 1, headers=headers)])
    assert queue.stats().total == 0

"""A lease begins when the store answers, not when it was first asked."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from duequeue import ManualClock, Message, Queue, RetryPolicy, State, StoreUnavailable
from duequeue.contract.parts import open_parts
from tests.fixtures.watched import Asked, Watch

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def queue(clock: ManualClock, watch: Watch) -> Iterator[Queue[Any]]:
    around = partial(watch.around, "orders")
    parts = open_parts("memory:", around=around, clock=clock, lease=MINUTE, codec=bytes)
    with parts.queue as queue:
        yield queue


@pytest.fixture
def fail_once(clock: ManualClock, watch: Watch) -> Callable[[str], None]:
    """Have an operation of the store fail once, after an hour."""

    def failures() -> Iterator[StoreUnavailable]:
        clock.advance(60 * MINUTE)
        yield StoreUnavailable("out for lunch")

    return lambda operation: watch.refuse(operation, failures())


def test_a_claim(queue: Queue[Any], fail_once: Callable[[str], None]) -> None:
    queue.offer("a", b"1")
    fail_once("claim")
    delivery = queue.try_poll()
    assert delivery is not None
    assert delivery.delivered_at == START + 60 * MINUTE
    assert delivery.lease_until == START + 61 * MINUTE
    assert queue.try_poll() is None


def test_an_extension(queue: Queue[Any], fail_once: Callable[[str], None]) -> None:
    queue.offer("a", b"1")
    delivery = queue.try_poll()
    assert delivery is not None
    fail_once("extend")
    assert delivery.extend()
    assert delivery.lease_until == START + 61 * MINUTE
    assert queue.read("a").state is State.LEASED  # type: ignore[union-attr]


def test_a_release(queue: Queue[Any], fail_once: Callable[[str], None]) -> None:
    queue.offer("a", b"1")
    delivery = queue.try_poll()
    assert delivery is not None
    fail_once("release")
    assert delivery.release(MINUTE)
    assert queue.try_poll() is None


def test_what_is_in_hand_does_not_wait_for_more(clock: ManualClock) -> None:
    class GoneAfterABurial(Watch):
        def note(self, asked: Asked) -> None:
            super().note(asked)
            if asked.operation == "claim" and self.count("bury"):
                raise StoreUnavailable("gone")

    patience = RetryPolicy(budget=timedelta(days=1))
    around = partial(GoneAfterABurial().around, "orders")
    parts = open_parts("memory:", around=around, clock=clock, retry=patience, max_attempts=1)
    with parts.queue as queue:
        queue.offer("given up", 1)
        assert queue.try_poll() is not None
        clock.advance(60 * MINUTE)
        queue.offer_batch([Message("good", 1), Message("later", 1, MINUTE)])
        assert [each.key for each in queue.try_poll_many(3)] == ["good"]

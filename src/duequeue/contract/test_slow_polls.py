"""Polls that take longer than a lease: no message comes twice, and no lease is already over."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from duequeue import Buried, ManualClock, Message, StoreUnavailable
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import (
    DEFAULT_LEASE,
    MILLISECOND,
    PickyCodec,
    claim,
    keys_of,
    snapshot,
)


class SlowCodec(PickyCodec):
    """Decodes while time passes, as if the store had taken so long."""

    def __init__(self, pass_time: Callable[[], None]) -> None:
        super().__init__()
        self._pass_time = pass_time

    def decode(self, data: bytes, /) -> str:
        self._pass_time()
        return super().decode(data)


def each_burial_takes(queue: Any, clock: ManualClock, time: timedelta) -> None:
    queue.events.subscribe(lambda event: clock.advance(time) if isinstance(event, Buried) else None)


def use_up(queue: QueueFace, clock: ManualClock, *numbers: int) -> None:
    """Offer messages in this order, and let their only attempt pass."""
    queue.offer_batch(in_order(*numbers))
    assert len(queue.try_poll_many(100)) == len(numbers)
    clock.advance(DEFAULT_LEASE)


def in_order(*numbers: int) -> list[Message[Any]]:
    return [Message(str(number), number, START + number * MILLISECOND) for number in numbers]


@pytest.mark.parametrize("waits", [False, True], ids=["try", "wait"])
def test_a_burial_that_outlasts_the_lease_does_not_make_a_message_come_twice(
    open_queue: OpenQueue, clock: ManualClock, waits: bool
) -> None:
    queue = open_queue(max_attempts=1)
    use_up(queue, clock, 0)
    queue.offer_batch(in_order(1, 2))
    each_burial_takes(queue, clock, DEFAULT_LEASE)
    deliveries = queue.poll_many(10, timedelta(0)) if waits else queue.try_poll_many(10)
    assert [(each.key, each.attempt) for each in deliveries] == [("1", 1), ("2", 1)]
    assert {each.lease_until for each in deliveries} == {clock.now() + DEFAULT_LEASE}
    assert queue.ack_many(deliveries) == 2
    assert keys_of(queue.buried(10)) == ["0"]


def test_a_poll_keeps_what_it_holds_and_claims_again_what_it_does_not(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(max_attempts=1)
    clock.advance(DEFAULT_LEASE)
    use_up(queue, clock, 0, 2, 4)
    queue.offer_batch(in_order(1, 3, 5))
    # The lease of 1 is over after three burials, when that of 3 has two thirds left.
    each_burial_takes(queue, clock, DEFAULT_LEASE / 3)
    deliveries = queue.try_poll_many(3)
    assert [(each.key, each.attempt) for each in deliveries] == [("1", 1), ("3", 1), ("5", 1)]
    assert all(each.lease_until > clock.now() for each in deliveries)
    assert queue.ack_many(deliveries) == 3


def test_a_claim_that_outlasts_its_lease_is_repeated_and_does_not_count(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    times = [DEFAULT_LEASE, timedelta(0)]
    queue = open_queue(codec=SlowCodec(lambda: clock.advance(times.pop(0))))
    queue.offer("a", "sound")
    delivery = claim(queue)
    assert (delivery.attempt, delivery.lease_until) == (1, clock.now() + DEFAULT_LEASE)
    assert delivery.ack()


def test_a_lease_that_is_always_too_short_is_an_error_and_no_attempt(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(codec=SlowCodec(lambda: clock.advance(DEFAULT_LEASE)))
    queue.offer("a", "sound")
    with pytest.raises(StoreUnavailable, match="use a longer lease"):
        queue.try_poll()
    assert snapshot(open_queue(codec=PickyCodec()), "a").attempts == 0

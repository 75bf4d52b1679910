"""Handlers that settle their message themselves, or say that it was taken away from them."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from duequeue import (
    DeliveryLost,
    Handled,
    LeaseLost,
    ManualClock,
    QueueStats,
    StoreUnavailable,
)
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import Consume
from duequeue.contract.logs import messages_of
from duequeue.contract.phrases import CONSUMER_LEASE, HOUR, claim, everything_in
from duequeue.contract.stage import Stage
from duequeue.contract.test_events import Diary

SAID = "queue 'orders': lost the lease of 'order-7', says its handler"

Loss = Callable[[], object]


def lost_by_now() -> object:
    raise DeliveryLost("somebody offered\nother content")


def returned() -> object:
    return DeliveryLost("somebody offered\nother content")


@pytest.mark.parametrize("loss", [lost_by_now, returned], ids=["raised", "returned"])
@pytest.mark.parametrize("rules", [{}, {"max_attempts": 1}, {"bury_on": DeliveryLost}], ids=str)
def test_a_delivery_that_was_taken_away_is_neither_a_failure_nor_retried(
    queue: QueueFace,
    consume: Consume,
    caplog: pytest.LogCaptureFixture,
    loss: Loss,
    rules: dict[str, Any],
) -> None:
    queue.offer("order-7", 1)
    diary = Diary(queue)
    with (
        caplog.at_level(logging.DEBUG, "duequeue.consumer"),
        consume(queue, lambda _: loss(), **rules),
    ):
        lost = diary.next(LeaseLost)
        handled = diary.next(Handled)
    assert lost == LeaseLost("orders", "order-7")
    assert (handled.verdict, handled.outcome) == (None, "lost")
    assert not [event for event in diary.so_far() if isinstance(event, LeaseLost)]
    assert messages_of("duequeue.consumer", caplog) == [f"{SAID}: somebody offered other content"]
    assert (queue.stats().leased, queue.stats().buried) == (1, 0)


def test_a_class_in_place_of_a_loss_means_the_same(
    queue: QueueFace, consume: Consume, caplog: pytest.LogCaptureFixture
) -> None:
    queue.offer("order-7", 1)
    diary = Diary(queue)
    caplog.set_level(logging.DEBUG, "duequeue.consumer")
    with consume(queue, lambda _: DeliveryLost):
        diary.next(LeaseLost)
    assert messages_of("duequeue.consumer", caplog) == [SAID]


def test_a_loss_that_the_consumer_has_noticed_is_counted_once(
    queue: QueueFace,
    stage: Stage,
    consume: Consume,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue.offer("order-7", 1)
    diary = Diary(queue)
    with caplog.at_level(logging.DEBUG, "duequeue.consumer"), consume(queue):
        scene = stage.next()
        assert queue.drop("order-7")
        clock.advance(CONSUMER_LEASE / 2)
        diary.next(LeaseLost)
        if stage.on_threads:
            scene.end(DeliveryLost("gone"))
        diary.next(Handled)
    assert not [event for event in diary.so_far() if isinstance(event, LeaseLost)]
    assert messages_of("duequeue.consumer", caplog) == [
        "queue 'orders': lost the lease of 'order-7'"
    ]


def test_what_a_handler_acks_with_others_is_handled(
    queue: QueueFace, stage: Stage, consume: Consume, caplog: pytest.LogCaptureFixture
) -> None:
    queue.offer("order-7", 1)
    diary = Diary(queue)
    with caplog.at_level(logging.DEBUG, "duequeue.consumer"), consume(queue):
        scene = stage.next()
        delivery: Any = scene.delivery
        assert queue.ack_many([delivery]) == 1
        scene.end()
        assert diary.next(Handled).outcome == "settled"
    assert not [event for event in diary.so_far() if isinstance(event, LeaseLost)]
    assert messages_of("duequeue.consumer", caplog) == []


SETTLEMENTS: dict[str, Callable[[Any], bool]] = {
    "ack": lambda delivery: delivery.ack(),
    "release": lambda delivery: delivery.release(HOUR),
    "bury": lambda delivery: delivery.bury("enough"),
}


@pytest.mark.parametrize("settle", SETTLEMENTS.values(), ids=SETTLEMENTS)
def test_nothing_follows_what_a_handler_settled(
    queue: QueueFace,
    stage: Stage,
    consume: Consume,
    caplog: pytest.LogCaptureFixture,
    settle: Callable[[Any], bool],
) -> None:
    queue.offer("order-7", 1)
    diary = Diary(queue)
    with caplog.at_level(logging.DEBUG, "duequeue.consumer"), consume(queue):
        scene = stage.next()
        assert settle(scene.delivery)
        before: tuple[QueueStats, Any, Any] = everything_in(queue, "order-7")
        scene.end(ValueError("afterwards"))
        handled = diary.next(Handled)
    assert (handled.outcome, type(handled.error)) == ("settled", ValueError)
    assert everything_in(queue, "order-7") == before
    assert not [event for event in diary.so_far() if isinstance(event, LeaseLost)]
    assert messages_of("duequeue.consumer", caplog) == []


def test_an_error_of_another_store_changes_nothing_either(
    queue: QueueFace, stage: Stage, consume: Consume, caplog: pytest.LogCaptureFixture
) -> None:
    queue.offer("order-7", 1)
    diary = Diary(queue)
    with caplog.at_level(logging.DEBUG, "duequeue.consumer"), consume(queue):
        scene = stage.next()
        assert scene.delivery.ack()
        scene.end(StoreUnavailable("no answer"))
        assert diary.next(Handled).outcome == "settled"
    assert messages_of("duequeue.consumer", caplog) == []
    assert queue.stats().total == 0


def test_a_settlement_by_a_plain_poll_says_so_too(queue: QueueFace) -> None:
    queue.offer("order-7", 1)
    delivery: Any = claim(queue)
    assert queue.ack_many([delivery]) == 1
    assert delivery.settled

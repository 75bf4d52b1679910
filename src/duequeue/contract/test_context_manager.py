"""`with delivery`: acks on success, releases on an exception and lets it through."""

import pytest

from duequeue import ManualClock
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import DEFAULT_LEASE, HOUR, claim, snapshot


class Stumbled(Exception):
    """The handler failed."""


def test_success_acks(queue: QueueFace) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    with delivery:
        assert queue.contains("a")
    assert not queue.contains("a")
    assert not delivery.ack()


def test_the_delivery_itself_is_handed_in(queue: QueueFace) -> None:
    queue.offer("a", 1)
    with claim(queue) as delivery:
        assert (delivery.key, delivery.payload) == ("a", 1)


@pytest.mark.parametrize("error", [Stumbled, KeyboardInterrupt, SystemExit])
def test_an_exception_releases_and_passes(queue: QueueFace, error: type[BaseException]) -> None:
    queue.offer("a", 1, START)
    thrown = error("as thrown")
    with pytest.raises(error) as caught, claim(queue):
        raise thrown
    assert caught.value is thrown
    delivery = claim(queue)
    assert (delivery.attempt, delivery.redelivered, delivery.due_at) == (2, True, START)


def test_what_was_settled_inside_stays_settled(queue: QueueFace) -> None:
    queue.offer("a", 1)
    with claim(queue) as delivery:
        assert delivery.release(HOUR)
    assert snapshot(queue, "a").attempts == 1
    queue.offer("b", 1)
    with claim(queue) as delivery:
        assert delivery.bury("enough")
    assert queue.stats().buried == 1


def test_an_ack_inside_is_not_undone_by_an_exception(queue: QueueFace) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)

    def acks_and_stumbles() -> None:
        with delivery:
            assert delivery.ack()
            raise Stumbled

    with pytest.raises(Stumbled):
        acks_and_stumbles()
    assert not queue.contains("a")


def test_a_lost_lease_is_left_to_its_new_holder(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    with claim(queue):
        clock.advance(DEFAULT_LEASE)
        holder = claim(queue)
    assert queue.contains("a")
    assert holder.ack()


def test_an_update_during_handling_survives_success(queue: QueueFace) -> None:
    queue.offer("a", 1)
    with claim(queue):
        queue.offer("a", 2, HOUR)
    assert snapshot(queue, "a").payload == 2


def test_an_update_during_handling_survives_failure(queue: QueueFace) -> None:
    queue.offer("a", 1)

    def updates_and_stumbles() -> None:
        with claim(queue):
            queue.offer("a", 2, HOUR)
            raise Stumbled

    with pytest.raises(Stumbled):
        updates_and_stumbles()
    assert queue.try_poll() is None
    assert snapshot(queue, "a").payload == 2

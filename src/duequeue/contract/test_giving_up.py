"""Giving up: too many attempts and payloads that cannot be decoded never block the queue."""

import pytest

from duequeue import ManualClock, Message
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import (
    DAY,
    DEFAULT_LEASE,
    MINUTE,
    PickyCodec,
    claim,
    keys_of,
)


@pytest.mark.parametrize("max_attempts", [1, 3])
def test_too_many_attempts_bury_instead_of_delivering(
    open_queue: OpenQueue, clock: ManualClock, max_attempts: int
) -> None:
    queue = open_queue(max_attempts=max_attempts)
    queue.offer("a", 1)
    for attempt in range(1, max_attempts + 1):
        assert claim(queue).attempt == attempt
        clock.advance(DEFAULT_LEASE)
    assert queue.try_poll() is None
    [buried] = queue.buried(10)
    assert (buried.key, buried.payload, buried.attempts) == ("a", 1, max_attempts)
    assert str(max_attempts) in buried.reason
    assert buried.buried_at == clock.now()
    assert queue.stats().total == 0


def test_releases_count_as_attempts(open_queue: OpenQueue) -> None:
    queue = open_queue(max_attempts=2)
    queue.offer("a", 1)
    claim(queue).release()
    claim(queue).release()
    assert queue.try_poll() is None
    assert keys_of(queue.buried(10)) == ["a"]


def test_the_last_attempt_may_still_be_acked_late(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(max_attempts=1)
    queue.offer("a", 1)
    delivery = claim(queue)
    clock.advance(DAY)
    assert delivery.ack()
    assert queue.try_poll() is None
    assert queue.buried(10) == []


def test_a_poll_goes_on_past_exhausted_messages(open_queue: OpenQueue, clock: ManualClock) -> None:
    queue = open_queue(max_attempts=1)
    queue.offer_batch([Message(str(n), n) for n in range(20)])
    assert len(queue.try_poll_many(20)) == 20
    clock.advance(DEFAULT_LEASE)
    queue.offer_batch([Message("x", 1), Message("y", 1)])
    assert claim(queue).key == "x"
    assert keys_of(queue.try_poll_many(2)) == ["y"]
    assert queue.stats().buried == 20


def test_a_revived_message_has_all_its_attempts_again(open_queue: OpenQueue) -> None:
    queue = open_queue(max_attempts=1)
    queue.offer("a", 1)
    claim(queue).release()
    assert queue.try_poll() is None
    assert queue.revive("a")
    assert claim(queue).attempt == 1


def test_without_max_attempts_a_message_is_never_given_up(queue: QueueFace) -> None:
    queue.offer("a", 1)
    for attempt in range(1, 50):
        delivery = claim(queue)
        assert delivery.attempt == attempt
        assert delivery.release()


def test_an_undecodable_payload_is_buried_with_the_reason(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=PickyCodec())
    queue.offer("a", "rotten apple", START - MINUTE)
    assert queue.try_poll() is None
    [buried] = queue.buried(10)
    assert (buried.key, buried.payload, buried.raw) == ("a", None, b"rotten apple")
    assert (buried.due_at, buried.buried_at) == (START - MINUTE, START)
    assert "rotten to the core" in buried.reason
    assert queue.stats().total == 0


def test_a_poll_goes_on_past_undecodable_payloads(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=PickyCodec())
    queue.offer_batch([Message(f"bad{n}", "rotten") for n in range(150)])
    queue.offer_batch([Message("good", "sound"), Message("better", "sounder")])
    assert claim(queue).key == "good"
    assert claim(queue).key == "better"
    assert queue.stats().buried == 150


def test_a_poll_of_many_goes_on_past_undecodable_payloads(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=PickyCodec())
    payloads = ["rotten", "sound", "rotten", "rotten", "sound", "sound"]
    queue.offer_batch([Message(str(n), payload) for n, payload in enumerate(payloads)])
    assert keys_of(queue.try_poll_many(2)) == ["1", "4"]
    assert keys_of(queue.try_poll_many(2)) == ["5"]
    assert keys_of(queue.buried(10)) == ["0", "2", "3"]


def test_an_undecodable_payload_may_be_revived_for_a_better_codec(open_queue: OpenQueue) -> None:
    picky = open_queue(codec=PickyCodec("fruit"))
    picky.offer("a", "rotten apple")
    assert picky.try_poll() is None
    assert picky.revive("a")
    assert picky.try_poll() is None
    assert picky.revive("a")
    assert claim(open_queue(codec=LenientCodec())).payload == "rotten apple"


class LenientCodec(PickyCodec):
    """Decodes what the picky one refuses, under the same type name."""

    def __init__(self) -> None:
        super().__init__("fruit")

    def decode(self, data: bytes, /) -> str:
        return data.decode()

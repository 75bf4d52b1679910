"""Buried: parked with a reason, looked at, revived or purged."""

from datetime import datetime, timedelta

import pytest

from duequeue import ManualClock, Message, OfferOutcome, State
from tests.contract.phrases import (
    DAY,
    DEFAULT_LEASE,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    PickyCodec,
    claim,
    keys_of,
    snapshot,
)
from tests.fixtures.faces import QueueFace
from tests.fixtures.stores import START, OpenQueue


def bury(queue: QueueFace, key: str, payload: object = 1, reason: str = "enough") -> None:
    queue.offer(key, payload)
    delivery = claim(queue)
    assert delivery.key == key
    assert delivery.bury(reason)


def test_a_buried_message_is_kept_with_reason_and_attempts(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", {"n": 1}, START - MINUTE)
    claim(queue).release()
    clock.advance(HOUR)
    assert claim(queue).bury("the printer \N{FIRE} burns")
    [buried] = queue.buried(10)
    assert (buried.key, buried.payload, buried.raw) == ("a", {"n": 1}, b'{"n":1}')
    assert (buried.due_at, buried.buried_at) == (START - MINUTE, START + HOUR)
    assert (buried.attempts, buried.reason) == (2, "the printer \N{FIRE} burns")


def test_a_buried_message_is_out_of_the_queue(queue: QueueFace, clock: ManualClock) -> None:
    bury(queue, "a")
    clock.advance(DAY)
    assert queue.try_poll() is None
    assert not queue.contains("a")
    assert not queue.drop("a")
    assert queue.drop_all(queue.name) == 0
    stats = queue.stats()
    assert (stats.total, stats.due, stats.leased, stats.future, stats.buried) == (0, 0, 0, 0, 1)
    assert keys_of(queue.buried(10)) == ["a"]


def test_a_buried_key_is_free(queue: QueueFace) -> None:
    bury(queue, "a", 1)
    assert queue.offer("a", 1, START) is OfferOutcome.CREATED
    assert queue.offer_batch([Message("a", 1, START)]) == [OfferOutcome.IGNORED]
    stats = queue.stats()
    assert (stats.total, stats.buried) == (1, 1)
    delivery = claim(queue)
    assert (delivery.attempt, delivery.ack()) == (1, True)
    assert queue.stats().buried == 1


def test_the_oldest_burial_is_listed_first(queue: QueueFace, clock: ManualClock) -> None:
    for key in "bac":
        bury(queue, key)
        clock.advance(SECOND)
    assert keys_of(queue.buried(10)) == ["b", "a", "c"]
    assert keys_of(queue.buried(2)) == ["b", "a"]


def test_burials_of_one_instant_are_listed_in_the_order_they_happened(queue: QueueFace) -> None:
    for key in "bac":
        bury(queue, key)
    assert keys_of(queue.buried(10)) == ["b", "a", "c"]


def test_no_burials_are_listed_when_none_are_asked_for(queue: QueueFace) -> None:
    bury(queue, "a")
    assert queue.buried(0) == []
    assert queue.buried(-1) == []


def test_nothing_is_buried_at_first(queue: QueueFace) -> None:
    assert queue.buried(10) == []
    assert queue.stats().buried == 0


def test_a_revived_message_is_due_now_as_if_never_delivered(
    queue: QueueFace, clock: ManualClock
) -> None:
    bury(queue, "a", "payload")
    clock.advance(HOUR)
    assert queue.revive("a")
    assert queue.buried(10) == []
    assert queue.stats().buried == 0
    delivery = claim(queue)
    assert (delivery.payload, delivery.due_at) == ("payload", START + HOUR)
    assert (delivery.attempt, delivery.redelivered) == (1, False)
    assert delivery.ack()


@pytest.mark.parametrize("due", [START + HOUR, HOUR], ids=["instant", "duration"])
def test_a_message_may_be_revived_for_later(
    queue: QueueFace, clock: ManualClock, due: datetime | timedelta
) -> None:
    bury(queue, "a")
    assert queue.revive("a", due)
    assert queue.try_poll() is None
    clock.advance(HOUR)
    assert claim(queue).due_at == START + HOUR


def test_an_identical_offer_after_a_revival_is_ignored(queue: QueueFace) -> None:
    bury(queue, "a", 1)
    queue.revive("a", START)
    assert queue.offer("a", 1, START) is OfferOutcome.IGNORED


def test_there_must_be_something_to_revive(queue: QueueFace) -> None:
    assert not queue.revive("a")
    bury(queue, "a")
    assert queue.revive("a")
    assert not queue.revive("a")


def test_a_live_key_is_not_overwritten_by_a_revival(queue: QueueFace) -> None:
    bury(queue, "a", "old")
    queue.offer("a", "new")
    assert not queue.revive("a")
    assert snapshot(queue, "a").payload == "new"
    assert queue.stats().buried == 1


def test_the_most_recent_burial_of_a_key_is_revived(queue: QueueFace, clock: ManualClock) -> None:
    for payload in ("first", "second"):
        bury(queue, "a", payload)
        clock.advance(SECOND)
    assert queue.revive("a")
    assert claim(queue).payload == "second"
    assert [buried.payload for buried in queue.buried(10)] == ["first"]


def test_of_burials_at_one_instant_the_later_one_is_revived(queue: QueueFace) -> None:
    bury(queue, "a", "first")
    bury(queue, "a", "second")
    assert queue.revive("a")
    assert claim(queue).payload == "second"


def test_of_burials_alike_in_everything_the_later_one_is_revived(queue: QueueFace) -> None:
    for key in "aba":
        bury(queue, key)
    assert queue.revive("a")
    assert keys_of(queue.buried(10)) == ["a", "b"]


def test_purging_takes_what_was_buried_strictly_before(
    queue: QueueFace, clock: ManualClock
) -> None:
    for key in "abc":
        bury(queue, key)
        clock.advance(SECOND)
    assert queue.purge_buried(START) == 0
    assert queue.purge_buried(START + SECOND) == 1
    assert keys_of(queue.buried(10)) == ["b", "c"]
    assert queue.purge_buried(START + 2 * SECOND + MILLISECOND) == 2
    assert queue.buried(10) == []


def test_purging_leaves_live_messages(queue: QueueFace, clock: ManualClock) -> None:
    bury(queue, "a")
    queue.offer("a", 1)
    assert queue.purge_buried(START + DAY) == 1
    assert queue.contains("a")


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


def test_a_buried_message_can_be_read(queue: QueueFace) -> None:
    bury(queue, "a", "payload", "enough")
    found = snapshot(queue, "a")
    assert (found.state, found.payload, found.attempts) == (State.BURIED, "payload", 1)
    assert (found.due_at, found.leased_until, found.reason) == (START, None, "enough")


def test_a_live_message_is_read_before_a_buried_one(queue: QueueFace) -> None:
    bury(queue, "a", "old")
    queue.offer("a", "new", HOUR)
    found = snapshot(queue, "a")
    assert (found.state, found.payload) == (State.FUTURE, "new")

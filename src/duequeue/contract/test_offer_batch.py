"""Batches: as if offered one by one in input order, each chunk all or nothing."""

import random
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from duequeue import ManualClock, Message, OfferOutcome, PayloadTooLarge
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import (
    HOUR,
    MILLISECOND,
    SECOND,
    attempts_to_settle,
    claim,
    everything_in,
    keys_of,
    snapshot,
)
from duequeue.message import MAX_PAYLOAD_BYTES

CREATED, UPDATED, IGNORED = OfferOutcome.CREATED, OfferOutcome.UPDATED, OfferOutcome.IGNORED
CHUNK = 1000
TOMORROW: Any = "tomorrow"


def test_an_empty_batch_does_nothing(queue: QueueFace) -> None:
    assert queue.offer_batch([]) == []
    assert queue.offer_batch(iter(())) == []
    assert queue.stats().total == 0


def test_outcomes_come_in_input_order(queue: QueueFace) -> None:
    queue.offer_batch([Message("m", 1, START), Message("c", 1, START), Message("x", 1, START)])
    outcomes = queue.offer_batch(
        [
            Message("z", 1, START),
            Message("x", 2, START),
            Message("c", 1, START),
            Message("m", 2, START, replace=False),
            Message("b", 1, START, replace=False),
        ]
    )
    assert outcomes == [CREATED, UPDATED, IGNORED, IGNORED, CREATED]
    stored = {key: snapshot(queue, key).payload for key in "zxcmb"}
    assert stored == {"z": 1, "x": 2, "c": 1, "m": 1, "b": 1}


def test_due_times_mean_what_they_mean_in_offer(queue: QueueFace) -> None:
    queue.offer_batch([Message("a", 1), Message("b", 1, HOUR), Message("c", 1, START - HOUR)])
    due = [snapshot(queue, key).due_at for key in "abc"]
    assert due == [START, START + HOUR, START - HOUR]


def test_a_delay_counts_from_when_its_message_is_taken(
    queue: QueueFace, clock: ManualClock
) -> None:
    def taking_its_time() -> Iterator[Message[Any]]:
        yield Message("a", 1, HOUR)
        clock.advance(SECOND)
        yield Message("b", 1, HOUR)
        clock.advance(SECOND)
        yield Message("c", 1)

    queue.offer_batch(taking_its_time())
    due = [snapshot(queue, key).due_at for key in "abc"]
    assert due == [START + HOUR, START + SECOND + HOUR, START + 2 * SECOND]


def test_a_key_twice_the_later_sees_the_earlier(queue: QueueFace) -> None:
    outcomes = queue.offer_batch([Message("a", 1, START), Message("a", 2, START)])
    assert outcomes == [CREATED, UPDATED]
    assert snapshot(queue, "a").payload == 2
    assert queue.stats().total == 1


def test_an_equal_message_twice_is_created_once(queue: QueueFace) -> None:
    outcomes = queue.offer_batch([Message("a", 1, START)] * 3)
    assert outcomes == [CREATED, IGNORED, IGNORED]


def test_without_replace_the_first_of_the_batch_stays(queue: QueueFace) -> None:
    batch = [Message("a", 1, replace=False), Message("a", 2, replace=False), Message("b", 1)]
    assert queue.offer_batch(batch) == [CREATED, IGNORED, CREATED]
    assert snapshot(queue, "a").payload == 1


def test_there_and_back_again_is_two_updates(queue: QueueFace) -> None:
    outcomes = queue.offer_batch([Message("a", n, START) for n in (1, 2, 1)])
    assert outcomes == [CREATED, UPDATED, UPDATED]
    assert snapshot(queue, "a").payload == 1


def test_there_and_back_again_revokes_the_lease_of_what_was_stored(queue: QueueFace) -> None:
    queue.offer("a", 1, START)
    holder = claim(queue)
    assert queue.offer_batch([Message("a", 2, START), Message("a", 1, START)]) == [UPDATED] * 2
    assert attempts_to_settle(holder) == [False] * 4
    delivery = claim(queue)
    assert (delivery.payload, delivery.attempt) == (1, 1)


def test_equal_messages_leave_a_lease_valid(queue: QueueFace) -> None:
    queue.offer("a", 1, START)
    holder = claim(queue)
    assert queue.offer_batch([Message("a", 1, START)] * 2) == [IGNORED] * 2
    assert holder.ack()
    assert queue.stats().total == 0


def test_an_update_in_a_batch_revokes_the_lease(queue: QueueFace) -> None:
    queue.offer("a", 1, START)
    holder = claim(queue)
    assert queue.offer_batch([Message("b", 1), Message("a", 2, START)]) == [CREATED, UPDATED]
    before = everything_in(queue, "a", "b")
    assert attempts_to_settle(holder) == [False] * 4
    assert everything_in(queue, "a", "b") == before


def test_ties_are_delivered_in_input_order(queue: QueueFace) -> None:
    queue.offer_batch([Message(key, 1, START) for key in "cadbe"])
    assert keys_of(queue.try_poll_many(10)) == ["c", "a", "d", "b", "e"]


def test_a_key_twice_takes_the_place_of_its_first_appearance(queue: QueueFace) -> None:
    batch = [Message("b", 1, START), Message("a", 1, START), Message("b", 2, START)]
    queue.offer_batch(batch)
    assert keys_of(queue.try_poll_many(10)) == ["b", "a"]


def test_delivery_is_by_due_time_whatever_the_input_order(queue: QueueFace) -> None:
    queue.offer_batch([Message(str(n), n, START - n * SECOND) for n in (1, 3, 2)])
    assert keys_of(queue.try_poll_many(10)) == ["3", "2", "1"]


@pytest.mark.parametrize("lazy", [False, True], ids=["list", "iterator"])
def test_a_batch_of_several_chunks(queue: QueueFace, lazy: bool) -> None:
    batch = [Message(f"{n:05}", n, START - n * SECOND) for n in range(2 * CHUNK + 500)]
    batch.append(Message("00000", -1, START))
    outcomes = queue.offer_batch(iter(batch) if lazy else batch)
    assert outcomes == [CREATED] * 2500 + [UPDATED]
    assert queue.stats().due == 2500
    assert snapshot(queue, "00000").payload == -1
    assert claim(queue).key == "02499"


@pytest.mark.parametrize("seed", range(3))
def test_a_batch_does_what_single_offers_do(open_queue: OpenQueue, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a test wants the same numbers every time
    together, one_by_one = open_queue("together"), open_queue("one by one")
    for _ in range(4):
        batch = [_any_message(chance) for _ in range(25)]
        single = [
            one_by_one.offer(message.key, message.payload, message.due, replace=message.replace)
            for message in batch
        ]
        assert together.offer_batch(batch) == single
        assert everything_in(together, *"abcdefgh") == everything_in(one_by_one, *"abcdefgh")
        claimed, same = together.try_poll_many(3), one_by_one.try_poll_many(3)
        assert keys_of(claimed) == keys_of(same)


def _any_message(chance: random.Random) -> Message[int]:
    due = START + chance.choice([-1, 0, 1]) * SECOND
    return Message(chance.choice("abcdefgh"), chance.choice([1, 2]), due, chance.random() < 0.7)


BAD_MESSAGES: list[Any] = [
    Message("", 1),
    Message("nul\0", 1),
    Message("k" * 201, 1),
    Message("naive", 1, datetime(2026, 3, 1)),  # noqa: DTZ001 - naive on purpose
    Message("unencodable", object()),
    Message("wrong due", 1, TOMORROW),
    ("a", 1),
    None,
]


@pytest.mark.argument_checks
def test_a_list_is_checked_whole_before_anything_is_stored(queue: QueueFace) -> None:
    good = [Message(str(n), n) for n in range(CHUNK + 10)]
    for bad in BAD_MESSAGES:
        with pytest.raises((ValueError, TypeError)):
            queue.offer_batch([*good, bad])
        assert queue.stats().total == 0


def test_a_payload_above_the_limit_refuses_the_whole_list(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=bytes)
    with pytest.raises(PayloadTooLarge):
        queue.offer_batch([Message("a", b""), Message("b", bytes(MAX_PAYLOAD_BYTES + 1))])
    assert queue.stats().total == 0


class OutOfPaper(Exception):
    """The source of a batch broke down."""


def test_an_iterator_is_stored_chunk_by_chunk(queue: QueueFace) -> None:
    def breaks_down() -> Iterator[Message[int]]:
        yield from (Message(str(n), n) for n in range(CHUNK + 500))
        raise OutOfPaper

    with pytest.raises(OutOfPaper):
        queue.offer_batch(breaks_down())
    assert queue.stats().total == CHUNK


def test_a_bad_message_from_an_iterator_takes_only_its_chunk_with_it(queue: QueueFace) -> None:
    def goes_bad() -> Iterator[Message[int]]:
        yield from (Message(str(n), n) for n in range(CHUNK + 500))
        yield Message("", 1)

    with pytest.raises(ValueError, match="key"):
        queue.offer_batch(goes_bad())
    assert queue.stats().total == CHUNK


def test_a_chunk_of_an_iterator_is_bounded_in_bytes_too(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=bytes)

    def breaks_down() -> Iterator[Message[bytes]]:
        yield from (Message(str(n), bytes(MAX_PAYLOAD_BYTES // 2)) for n in range(4))
        raise OutOfPaper

    with pytest.raises(OutOfPaper):
        queue.offer_batch(breaks_down())
    assert queue.stats().total > 0


def test_a_batch_may_free_and_fill_the_same_queue_again(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer_batch([Message(key, 1, START) for key in "abc"])
    assert queue.ack_many(queue.try_poll_many(2)) == 2
    clock.advance(MILLISECOND)
    outcomes = queue.offer_batch([Message(key, 1, START) for key in "abc"])
    assert outcomes == [CREATED, CREATED, IGNORED]

"""Offer: created, updated or ignored, and what each does to a lease."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from duequeue import ManualClock, OfferOutcome, PayloadTooLarge
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import (
    DAY,
    DEFAULT_LEASE,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    attempts_to_settle,
    claim,
    everything_in,
    snapshot,
)
from duequeue.message import MAX_PAYLOAD_BYTES

CREATED, UPDATED, IGNORED = OfferOutcome.CREATED, OfferOutcome.UPDATED, OfferOutcome.IGNORED


def test_a_new_key_is_created(queue: QueueFace) -> None:
    assert queue.offer("a", 1) is CREATED
    assert snapshot(queue, "a").payload == 1


def test_a_new_key_is_created_without_replace_too(queue: QueueFace) -> None:
    assert queue.offer("a", 1, replace=False) is CREATED
    assert snapshot(queue, "a").payload == 1


def test_without_replace_whatever_is_stored_stays(queue: QueueFace) -> None:
    queue.offer("a", 1, HOUR)
    before = everything_in(queue, "a")
    assert queue.offer("a", 2, 2 * HOUR, replace=False) is IGNORED
    assert everything_in(queue, "a") == before


def test_without_replace_a_leased_message_stays_leased(queue: QueueFace) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    assert queue.offer("a", 2, replace=False) is IGNORED
    assert queue.try_poll() is None
    assert delivery.ack()
    assert not queue.contains("a")


def test_an_equal_offer_is_ignored(queue: QueueFace) -> None:
    queue.offer("a", {"n": [1, 2]}, HOUR)
    before = everything_in(queue, "a")
    assert queue.offer("a", {"n": [1, 2]}, HOUR) is IGNORED
    assert everything_in(queue, "a") == before


def test_an_equal_offer_leaves_the_lease_valid_and_its_ack_deletes(queue: QueueFace) -> None:
    queue.offer("a", 1, START)
    delivery = claim(queue)
    assert queue.offer("a", 1, START) is IGNORED
    assert queue.try_poll() is None
    assert delivery.ack()
    assert not queue.contains("a")


def test_an_equal_offer_leaves_the_attempts(queue: QueueFace) -> None:
    queue.offer("a", 1, START)
    claim(queue).release()
    assert queue.offer("a", 1, START) is IGNORED
    assert claim(queue).attempt == 2


def test_equal_is_judged_in_whole_milliseconds(queue: QueueFace) -> None:
    queue.offer("a", 1, START + timedelta(microseconds=1))
    assert queue.offer("a", 1, START + timedelta(microseconds=999)) is IGNORED
    assert queue.offer("a", 1, START) is IGNORED
    assert queue.offer("a", 1, START + MILLISECOND) is UPDATED


def test_milliseconds_are_floored_before_the_epoch_too(queue: QueueFace) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    queue.offer("a", 1, epoch - timedelta(microseconds=1))
    assert claim(queue).due_at == epoch - MILLISECOND


def test_the_same_instant_in_another_zone_is_equal(queue: QueueFace) -> None:
    queue.offer("a", 1, START)
    assert queue.offer("a", 1, START.astimezone(timezone(timedelta(hours=5.5)))) is IGNORED


def test_equal_means_the_time_first_asked_for_not_the_one_released_to(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", 1, START)
    claim(queue).release(HOUR)
    assert queue.offer("a", 1, START) is IGNORED
    assert queue.try_poll() is None
    assert queue.offer("a", 1, START + HOUR) is UPDATED
    clock.advance(HOUR)
    assert claim(queue).attempt == 1


def test_another_payload_updates(queue: QueueFace) -> None:
    queue.offer("a", 1, START)
    assert queue.offer("a", 2, START) is UPDATED
    delivery = claim(queue)
    assert (delivery.payload, delivery.due_at) == (2, START)


def test_another_time_updates(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    assert queue.offer("a", 1, HOUR) is UPDATED
    assert queue.try_poll() is None
    clock.advance(HOUR)
    delivery = claim(queue)
    assert (delivery.payload, delivery.due_at) == (1, START + HOUR)


def test_an_update_may_bring_a_message_forward(queue: QueueFace) -> None:
    queue.offer("a", 1, DAY)
    assert queue.offer("a", 1) is UPDATED
    assert claim(queue).due_at == START


def test_an_update_does_not_add_a_message(queue: QueueFace) -> None:
    queue.offer("a", 1)
    queue.offer("a", 2)
    assert queue.stats().total == 1


def test_an_update_sets_the_attempts_back_to_zero(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    claim(queue)
    clock.advance(DEFAULT_LEASE)
    claim(queue).release()
    queue.offer("a", 2)
    assert snapshot(queue, "a").attempts == 0
    delivery = claim(queue)
    assert (delivery.attempt, delivery.redelivered) == (1, False)


def test_an_update_revokes_the_lease(queue: QueueFace) -> None:
    queue.offer("a", 1)
    holder = claim(queue)
    assert queue.offer("a", 2) is UPDATED
    before = everything_in(queue, "a")
    assert attempts_to_settle(holder) == [False] * 4
    assert everything_in(queue, "a") == before
    assert claim(queue).payload == 2


def test_an_update_after_the_lease_ran_out_still_wins_over_the_late_holder(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", 1)
    holder = claim(queue)
    clock.advance(DEFAULT_LEASE)
    queue.offer("a", 2)
    assert attempts_to_settle(holder) == [False] * 4
    assert claim(queue).payload == 2


def test_an_update_to_the_future_takes_a_leased_message_out_until_then(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", 1)
    claim(queue)
    queue.offer("a", 1, HOUR)
    assert queue.stats().future == 1
    clock.advance(HOUR - MILLISECOND)
    assert queue.try_poll() is None
    clock.advance(MILLISECOND)
    assert claim(queue).attempt == 1


def test_a_key_is_free_after_an_ack(queue: QueueFace) -> None:
    queue.offer("a", 1, START)
    claim(queue).ack()
    assert queue.offer("a", 1, START) is CREATED


def test_a_key_is_free_after_a_drop(queue: QueueFace) -> None:
    queue.offer("a", 1, START)
    queue.drop("a")
    assert queue.offer("a", 1, START, replace=False) is CREATED


def test_past_and_present_are_due_now(queue: QueueFace) -> None:
    beginning = datetime.min.replace(tzinfo=UTC)
    for due in (None, START, timedelta(0), -HOUR, START - 400 * DAY, beginning):
        queue.offer("a", 1, due)
        assert claim(queue).ack()


def test_no_due_time_means_now(queue: QueueFace, clock: ManualClock) -> None:
    clock.advance(7 * SECOND)
    queue.offer("a", 1)
    assert claim(queue).due_at == START + 7 * SECOND


def test_a_duration_counts_from_now(queue: QueueFace, clock: ManualClock) -> None:
    clock.advance(7 * SECOND)
    queue.offer("a", 1, MINUTE)
    assert snapshot(queue, "a").due_at == START + 7 * SECOND + MINUTE


def test_a_due_time_at_the_end_of_the_calendar_is_kept(queue: QueueFace) -> None:
    end = datetime.max.replace(tzinfo=UTC)
    queue.offer("a", 1, end)
    assert snapshot(queue, "a").due_at == end.replace(microsecond=999_000)
    assert queue.stats().next_due_at == end.replace(microsecond=999_000)


def test_keys_have_1_to_200_characters_of_any_kind(queue: QueueFace) -> None:
    for key in ("x", "x" * 200, "\N{GRINNING FACE}" * 200, " ", "\n", "'; --", "%s", ":key", "?"):
        assert queue.offer(key, 1) is CREATED
        assert queue.contains(key)
        delivery = claim(queue)
        assert (delivery.key, delivery.ack()) == (key, True)


def test_long_keys_are_never_cut(queue: QueueFace) -> None:
    stem = "\N{GRINNING FACE}" * 199
    assert [queue.offer(stem + last, last) for last in "abc"] == [CREATED] * 3
    assert [snapshot(queue, stem + last).payload for last in "abc"] == ["a", "b", "c"]


def test_a_payload_at_the_limit_is_kept_whole(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=bytes)
    payload = b"\x00\xff" * (MAX_PAYLOAD_BYTES // 2)
    assert queue.offer("a", payload) is CREATED
    assert claim(queue).payload == payload


def test_a_payload_above_the_limit_is_refused(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=bytes)
    with pytest.raises(PayloadTooLarge, match="8388608") as refusal:
        queue.offer("a", bytes(MAX_PAYLOAD_BYTES + 1))
    assert isinstance(refusal.value, ValueError)
    assert queue.stats().total == 0

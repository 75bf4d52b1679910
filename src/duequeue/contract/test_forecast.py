"""Forecasts: how many messages fall due when."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duequeue import Bucket, ManualClock, Message
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import DAY, DEFAULT_LEASE, HOUR, MILLISECOND, MINUTE, claim


def offer(queue: QueueFace, *due: timedelta) -> None:
    """Offer a message for each time from the beginning of the test."""
    queue.offer_batch([Message(f"key-{at}", 1, START + at) for at in due])


def numbers(queue: QueueFace, **options: Any) -> list[int]:
    return [bucket.messages for bucket in queue.forecast(**options)]


def test_an_empty_queue_has_empty_buckets(queue: QueueFace) -> None:
    buckets = queue.forecast()
    assert buckets == [Bucket(START + hour * HOUR, 0, 0) for hour in range(24)]


def test_messages_count_in_the_bucket_in_which_they_fall_due(queue: QueueFace) -> None:
    offer(queue, MILLISECOND, HOUR - MILLISECOND, HOUR, 2 * HOUR + MINUTE, 3 * HOUR)
    assert numbers(queue, until=4 * HOUR) == [2, 1, 1, 1]


def test_buckets_begin_at_multiples_of_their_length(queue: QueueFace, clock: ManualClock) -> None:
    clock.advance(20 * MINUTE)
    offer(queue, 59 * MINUTE, 61 * MINUTE)
    buckets = queue.forecast(HOUR, until=HOUR)
    assert buckets == [Bucket(START, 1, 0), Bucket(START + HOUR, 1, 0)]
    (day, after) = queue.forecast(DAY, until=DAY)
    assert (day.begins_at, day.messages) == (START.replace(hour=0), 2)
    assert after == Bucket(START.replace(hour=0) + DAY, 0, 0)


def test_nothing_counts_from_the_end_on(queue: QueueFace) -> None:
    offer(queue, 89 * MINUTE, 90 * MINUTE, 91 * MINUTE)
    assert numbers(queue, until=90 * MINUTE) == [0, 1]
    assert numbers(queue, until=START + 90 * MINUTE) == [0, 1]
    assert numbers(queue, until=START + 90 * MINUTE + MILLISECOND) == [0, 2]
    assert numbers(queue, until=MILLISECOND) == [0]


def test_due_messages_are_overdue_in_the_first_bucket(queue: QueueFace, clock: ManualClock) -> None:
    offer(queue, -DAY, -MILLISECOND, timedelta(0), MILLISECOND)
    assert queue.forecast(until=HOUR) == [Bucket(START, messages=4, overdue=3)]
    clock.advance(HOUR)
    first, second = queue.forecast(until=2 * HOUR)
    assert first == Bucket(START + HOUR, messages=4, overdue=4)
    assert second == Bucket(START + 2 * HOUR, messages=0, overdue=0)


def test_leased_messages_count_when_they_are_free_again(
    queue: QueueFace, clock: ManualClock
) -> None:
    offer(queue, -HOUR, -MINUTE)
    claim(queue)
    assert queue.forecast(until=HOUR) == [Bucket(START, messages=1, overdue=1)]
    clock.advance(DEFAULT_LEASE)
    assert queue.forecast(until=MINUTE) == [Bucket(START, messages=2, overdue=2)]


def test_a_released_message_counts_when_it_is_due_again(queue: QueueFace) -> None:
    offer(queue, -HOUR)
    claim(queue).release(90 * MINUTE)
    assert numbers(queue, until=2 * HOUR) == [0, 1]


def test_other_queues_and_buried_messages_do_not_count(open_queue: OpenQueue) -> None:
    queue, other = open_queue("orders"), open_queue("invoices")
    offer(other, MINUTE, -MINUTE)
    offer(queue, -MINUTE)
    claim(queue).bury("enough")
    assert numbers(queue, until=HOUR) == [0]


def test_an_instant_before_1970_has_buckets_too(queue: QueueFace, clock: ManualClock) -> None:
    clock.set(datetime(1969, 12, 31, 22, 30, tzinfo=UTC))
    queue.offer("a", 1, 20 * MINUTE)
    queue.offer("b", 1, 2 * HOUR)
    assert [(each.begins_at.hour, each.messages) for each in queue.forecast(until=2 * HOUR)] == [
        (22, 1),
        (23, 0),
        (0, 0),
    ]
    assert numbers(queue, until=3 * HOUR) == [1, 0, 1, 0]


@pytest.mark.argument_checks
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bucket": timedelta(0)}, "bucket must be at least one millisecond"),
        ({"bucket": -HOUR}, "bucket must be at least one millisecond"),
        ({"until": timedelta(0)}, "until must be at least one millisecond"),
        ({"until": START}, "until must be later than now"),
        ({"until": datetime(2026, 3, 2)}, "until must be timezone-aware"),  # noqa: DTZ001
        ({"bucket": MILLISECOND}, "86,400,000 buckets .* the limit is 10,000"),
    ],
)
def test_nonsense_is_refused(queue: QueueFace, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        queue.forecast(**options)


@pytest.mark.argument_checks
@pytest.mark.parametrize("argument", ["bucket", "until"])
def test_a_number_is_not_a_time(queue: QueueFace, argument: str) -> None:
    with pytest.raises(TypeError, match=f"{argument} must be a"):
        queue.forecast(**{argument: 3600})  # type: ignore[arg-type]


def test_the_most_buckets_are_allowed(queue: QueueFace) -> None:
    offer(queue, 9_999 * MINUTE)
    assert numbers(queue, bucket=MINUTE, until=10_000 * MINUTE) == [0] * 9_999 + [1]

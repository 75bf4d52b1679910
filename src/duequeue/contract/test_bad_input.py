"""Bad input: a ValueError or TypeError that names the argument, and nothing is touched."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import product
from typing import Any

import pytest

from duequeue import ManualClock, Message
from duequeue.contract.faces import Face, QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import HOUR, SECOND, claim, everything_in

pytestmark = pytest.mark.argument_checks

NAIVE = datetime(2026, 3, 1, 12)  # noqa: DTZ001 - naive on purpose
AFTER_THE_END = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))
BEFORE_THE_BEGINNING = datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))

Use = Callable[[QueueFace, Any], object]

USES_OF_A_KEY: list[Use] = [
    lambda queue, key: queue.offer(key, 1),
    lambda queue, key: queue.offer(key, 1, replace=False),
    lambda queue, key: queue.offer_batch([Message(key, 1)]),
    lambda queue, key: queue.read(key),
    lambda queue, key: queue.contains(key),
    lambda queue, key: queue.drop(key),
    lambda queue, key: queue.revive(key),
    lambda queue, key: queue.reschedule(key, START),
    lambda queue, key: queue.run_now(key),
]

USES_OF_A_DUE_TIME: list[Use] = [
    lambda queue, due: queue.offer("b", 1, due),
    lambda queue, due: queue.offer_batch([Message("b", 1, due)]),
    lambda queue, due: queue.revive("buried", due),
    lambda queue, due: queue.revive_all(due=due),
    lambda queue, due: queue.reschedule("due", due),
]

USES_OF_A_LIMIT: list[Use] = [
    lambda queue, limit: queue.try_poll_many(limit),
    lambda queue, limit: queue.poll_many(limit),
    lambda queue, limit: queue.buried(limit),
    lambda queue, limit: queue.history(limit),
]


@pytest.fixture
def furnished(queue: QueueFace) -> QueueFace:
    """A queue with one message buried and one due."""
    queue.offer("buried", 1)
    claim(queue).bury("enough")
    queue.offer("due", 1)
    return queue


def seen(queue: QueueFace) -> object:
    return everything_in(queue, "buried", "due", "b")


def test_a_key_has_1_to_200_characters_and_no_nul(furnished: QueueFace) -> None:
    before = seen(furnished)
    for use, key in product(USES_OF_A_KEY, ["", "x" * 201, "a\0b", "\0", "lone \ud800"]):
        with pytest.raises(ValueError, match="key"):
            use(furnished, key)
    assert seen(furnished) == before


def test_a_key_is_text(furnished: QueueFace) -> None:
    before = seen(furnished)
    for use, key in product(USES_OF_A_KEY, [None, 1, b"a", ["a"]]):
        with pytest.raises((TypeError, ValueError), match="key"):
            use(furnished, key)
    assert seen(furnished) == before


@pytest.mark.parametrize(
    "due",
    [NAIVE, AFTER_THE_END, BEFORE_THE_BEGINNING, timedelta.max, timedelta.min],
    ids=["naive", "after the end", "before the beginning", "too long", "too long ago"],
)
def test_a_due_time_is_aware_and_within_the_calendar(
    furnished: QueueFace, due: datetime | timedelta
) -> None:
    before = seen(furnished)
    for use in USES_OF_A_DUE_TIME:
        with pytest.raises(ValueError, match="due"):
            use(furnished, due)
    assert seen(furnished) == before


def test_a_due_time_is_an_instant_or_a_duration(furnished: QueueFace) -> None:
    before = seen(furnished)
    wrong = ["2026-03-01T12:00Z", 5, 5.0, date(2026, 3, 1), START.time()]
    for use, due in product(USES_OF_A_DUE_TIME, wrong):
        with pytest.raises(TypeError, match="due"):
            use(furnished, due)
    assert seen(furnished) == before


def test_a_limit_is_a_whole_number(furnished: QueueFace) -> None:
    before = seen(furnished)
    for use, limit in product(USES_OF_A_LIMIT, ["1", True, False, 1.0, None]):
        with pytest.raises(TypeError, match="limit"):
            use(furnished, limit)
    assert seen(furnished) == before


def test_a_purge_needs_an_aware_instant(furnished: QueueFace) -> None:
    before = seen(furnished)
    with pytest.raises(ValueError, match="before"):
        furnished.purge_buried(NAIVE)
    hour: Any = HOUR
    with pytest.raises(TypeError, match="before"):
        furnished.purge_buried(hour)
    assert seen(furnished) == before


def test_a_timeout_is_not_negative(furnished: QueueFace) -> None:
    for timeout in (-SECOND, timedelta(microseconds=-1)):
        with pytest.raises(ValueError, match="timeout"):
            furnished.poll(timeout)
        with pytest.raises(ValueError, match="timeout"):
            furnished.poll_many(1, timeout)
    assert furnished.stats().due == 1


def test_a_timeout_is_a_duration(furnished: QueueFace) -> None:
    soon: Any = "5"
    with pytest.raises(TypeError, match="timeout"):
        furnished.poll(soon)
    with pytest.raises(TypeError, match="timeout"):
        furnished.poll_many(1, soon)
    assert furnished.stats().due == 1


def test_a_delay_is_a_duration_that_is_not_negative(furnished: QueueFace) -> None:
    delivery = claim(furnished)
    before = seen(furnished)
    for delay in (-SECOND, timedelta(microseconds=-1), timedelta.max):
        with pytest.raises(ValueError, match="delay"):
            delivery.release(delay)
    five: Any = 5
    with pytest.raises(TypeError, match="delay"):
        delivery.release(five)
    assert seen(furnished) == before
    assert delivery.ack()


def test_a_lease_is_extended_by_a_positive_duration(furnished: QueueFace) -> None:
    delivery = claim(furnished)
    before = seen(furnished)
    for lease in (timedelta(0), -SECOND, timedelta.max):
        with pytest.raises(ValueError, match="lease"):
            delivery.extend(lease)
    five: Any = 5
    with pytest.raises(TypeError, match="lease"):
        delivery.extend(five)
    assert seen(furnished) == before
    assert delivery.ack()


def test_a_reason_is_text(furnished: QueueFace) -> None:
    delivery = claim(furnished)
    before = seen(furnished)
    nothing: Any = None
    with pytest.raises(TypeError, match="reason"):
        delivery.bury(nothing)
    assert seen(furnished) == before


def test_only_deliveries_are_acked(furnished: QueueFace) -> None:
    not_deliveries: Any = ["due"]
    with pytest.raises(TypeError):
        furnished.ack_many(not_deliveries)
    assert furnished.stats().due == 1


def test_a_payload_that_cannot_be_encoded_is_not_stored(furnished: QueueFace) -> None:
    before = seen(furnished)
    with pytest.raises(TypeError):
        furnished.offer("b", object())
    with pytest.raises(TypeError):
        furnished.offer("due", object())
    assert seen(furnished) == before


def test_keys_of_a_payload_are_text(furnished: QueueFace) -> None:
    with pytest.raises(TypeError, match=r"payload cannot .* the keys of a dict must be strings"):
        furnished.offer("b", {1: 2})


def test_to_replace_or_not_is_a_clear_word(furnished: QueueFace) -> None:
    before = seen(furnished)
    no: Any = "no"
    with pytest.raises(TypeError, match="replace"):
        furnished.offer("due", 2, replace=no)
    assert seen(furnished) == before


def test_a_payload_of_another_type_is_not_stored(open_queue: OpenQueue) -> None:
    for codec in (str, bytes):
        queue = open_queue(codec=codec)
        with pytest.raises(TypeError, match="payload"):
            queue.offer("a", 1)
        assert queue.stats().total == 0


@pytest.mark.parametrize("url", ["mongodb://localhost/x", "orders.db", "", "://", "SQLIT:///x"])
def test_an_unknown_scheme_is_answered_with_the_known_ones(face: Face, url: str) -> None:
    with pytest.raises(ValueError, match=r"(?s)memory.*sqlite.*postgresql"):
        face.open(url, "orders")


def test_a_url_is_text(face: Face) -> None:
    url: Any = None
    with pytest.raises(TypeError, match="url"):
        face.open(url, "orders")


def test_a_manual_clock_wants_aware_instants() -> None:
    with pytest.raises(ValueError, match="naive"):
        ManualClock(NAIVE)
    clock = ManualClock(START)
    with pytest.raises(ValueError, match="naive"):
        clock.set(NAIVE)
    assert clock.now() == START
    assert clock.now().tzinfo is UTC

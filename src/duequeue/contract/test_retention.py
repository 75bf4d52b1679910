"""Queues with a retention: old rows of the history and old burials are deleted by age."""

from typing import Any

import pytest

from duequeue import ManualClock, Message, Retention
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import Consume, OpenQueue
from duequeue.contract.phrases import DAY, HOUR, MILLISECOND, claim, keys_of
from duequeue.contract.stage import until
from duequeue.flows import cleaning

BOTH = Retention(history=30 * DAY, buried=90 * DAY)


def bury(queue: QueueFace, key: str) -> None:
    queue.offer(key, 1)
    assert claim(queue).bury("enough")


def settle(queue: QueueFace, *keys: str) -> None:
    queue.offer_batch([Message(key, 1) for key in keys])
    assert queue.ack_many(queue.try_poll_many(len(keys))) == len(keys)


def settled(queue: QueueFace) -> set[str]:
    return {row.key for row in queue.history(10_000)}


def test_polls_delete_what_is_too_old(open_queue: OpenQueue, clock: ManualClock) -> None:
    queue = open_queue(history=True, retention=BOTH)
    bury(queue, "old")
    clock.advance(HOUR)
    bury(queue, "younger")
    clock.advance(30 * DAY)
    assert queue.try_poll() is None
    assert (settled(queue), keys_of(queue.buried(10))) == ({"younger"}, ["old", "younger"])
    clock.advance(60 * DAY)
    assert queue.try_poll() is None
    assert (settled(queue), keys_of(queue.buried(10))) == (set(), ["younger"])


def test_what_is_exactly_as_old_is_kept(open_queue: OpenQueue, clock: ManualClock) -> None:
    queue = open_queue(history=True, retention=Retention(history=DAY, buried=DAY))
    bury(queue, "a")
    clock.advance(DAY)
    queue.try_poll()
    assert (settled(queue), keys_of(queue.buried(10))) == ({"a"}, ["a"])
    clock.advance(cleaning.INTERVAL * MILLISECOND)
    queue.try_poll()
    assert (settled(queue), keys_of(queue.buried(10))) == (set(), [])


def test_each_may_be_kept_for_ever(open_queue: OpenQueue, clock: ManualClock) -> None:
    for name, retention in (
        ("history", Retention(buried=DAY)),
        ("burials", Retention(history=DAY)),
        ("both", None),
    ):
        queue = open_queue(name, history=True, retention=retention)
        bury(queue, "a")
        clock.advance(3650 * DAY)
        queue.try_poll()
        kept = (len(settled(queue)), len(queue.buried(10)))
        assert kept == {"history": (1, 0), "burials": (0, 1), "both": (1, 1)}[name]


def test_a_waiting_consumer_does_it_too(
    open_queue: OpenQueue, consume: Consume, clock: ManualClock
) -> None:
    queue = open_queue(history=True, retention=BOTH)
    bury(queue, "old")
    consume(queue, lambda _: None)
    clock.advance(91 * DAY)
    until(lambda: (settled(queue), queue.buried(10)) == (set(), []))


def test_a_backlog_goes_in_chunks(
    open_queue: OpenQueue, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaning, "CHUNK", 3)
    queue = open_queue(history=True, retention=Retention(history=DAY, buried=DAY))
    settle(queue, *"abcdefg")
    for key in "hij":
        bury(queue, key)
    clock.advance(HOUR)
    settle(queue, "young")
    clock.advance(DAY)
    for _ in range(5):
        assert queue.try_poll() is None
    assert (settled(queue), queue.buried(10)) == ({"young"}, [])


def test_it_looks_only_once_in_a_while(open_queue: OpenQueue, clock: ManualClock) -> None:
    queue = open_queue(history=True, retention=Retention(history=HOUR))
    settle(queue, "a")
    clock.advance(HOUR)
    queue.try_poll()
    clock.advance(cleaning.INTERVAL * MILLISECOND - MILLISECOND)
    queue.try_poll()
    assert settled(queue) == {"a"}
    clock.advance(MILLISECOND)
    queue.try_poll()
    assert settled(queue) == set()


def test_a_clock_that_is_set_back_does_not_put_it_off(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(history=True, retention=Retention(history=HOUR))
    settle(queue, "a")
    began = clock.now()
    clock.advance(3650 * DAY)
    queue.try_poll()
    clock.set(began)
    settle(queue, "b")
    clock.advance(2 * HOUR)
    queue.try_poll()
    assert settled(queue) == set()


def test_other_queues_are_left_alone(open_queue: OpenQueue, clock: ManualClock) -> None:
    queue = open_queue("orders", history=True, retention=BOTH)
    other = open_queue("invoices", history=True)
    for each in (queue, other):
        settle(each, "a")
        bury(each, "b")
    clock.advance(3650 * DAY)
    queue.try_poll()
    assert (settled(queue), queue.buried(10)) == (set(), [])
    assert (settled(other), keys_of(other.buried(10))) == ({"a", "b"}, ["b"])


def test_live_messages_are_never_too_old(open_queue: OpenQueue, clock: ManualClock) -> None:
    queue = open_queue(history=True, retention=BOTH)
    queue.offer("a", 1, 365 * DAY)
    clock.advance(365 * DAY)
    assert claim(queue).key == "a"


@pytest.mark.argument_checks
@pytest.mark.parametrize("retention", [30 * DAY, {"history": DAY}, True])
def test_a_retention_is_a_retention(open_queue: OpenQueue, retention: object) -> None:
    with pytest.raises(TypeError, match="retention must be a Retention"):
        open_queue(retention=retention)


def test_a_retention_has_positive_durations() -> None:
    not_a_duration: Any = 30
    with pytest.raises(ValueError, match="history must be at least one millisecond"):
        Retention(history=0 * DAY)
    with pytest.raises(TypeError, match="buried must be a timedelta"):
        Retention(buried=not_a_duration)
    with pytest.raises(ValueError, match="retention must name"):
        Retention()

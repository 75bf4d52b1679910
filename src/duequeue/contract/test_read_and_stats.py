"""Looking without touching, and taking out by hand."""

from datetime import timedelta

import pytest

from duequeue import ManualClock, Message, QueueStats, State, UndecodablePayload
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import (
    DEFAULT_LEASE,
    HOUR,
    MINUTE,
    SECOND,
    PickyCodec,
    claim,
    everything_in,
    snapshot,
)

NOTHING = QueueStats(
    total=0, due=0, leased=0, future=0, buried=0, oldest_due_at=None, next_due_at=None
)


def test_what_is_not_there_reads_as_none(queue: QueueFace) -> None:
    assert queue.read("a") is None
    assert not queue.contains("a")


def test_a_message_is_read_in_every_state_of_its_life(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", [1], HOUR)
    states = [snapshot(queue, "a").state]
    clock.advance(HOUR)
    states.append(snapshot(queue, "a").state)
    claim(queue)
    states.append(snapshot(queue, "a").state)
    clock.advance(DEFAULT_LEASE)
    states.append(snapshot(queue, "a").state)
    claim(queue).bury("enough")
    states.append(snapshot(queue, "a").state)
    assert states == [State.FUTURE, State.DUE, State.LEASED, State.DUE, State.BURIED]


def test_a_snapshot_tells_key_payload_time_and_attempts(queue: QueueFace) -> None:
    queue.offer("a", {"n": 1}, START - MINUTE)
    found = snapshot(queue, "a")
    assert (found.key, found.payload, found.due_at) == ("a", {"n": 1}, START - MINUTE)
    assert (found.attempts, found.leased_until, found.reason) == (0, None, None)
    assert found.due_at.utcoffset() == timedelta(0)


def test_a_snapshot_of_a_leased_message_tells_until_when(queue: QueueFace) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    found = snapshot(queue, "a")
    assert (found.attempts, found.leased_until) == (1, delivery.lease_until)


def test_a_snapshot_of_a_released_message_tells_the_time_first_asked_for(queue: QueueFace) -> None:
    queue.offer("a", 1, START - MINUTE)
    claim(queue).release(HOUR)
    found = snapshot(queue, "a")
    assert (found.state, found.due_at) == (State.FUTURE, START - MINUTE)
    assert (found.attempts, found.leased_until) == (1, None)


def test_reading_changes_nothing(queue: QueueFace) -> None:
    queue.offer("a", 1)
    for _ in range(3):
        assert snapshot(queue, "a").state is State.DUE
        assert queue.contains("a")
        assert queue.stats().due == 1
    delivery = claim(queue)
    assert delivery.attempt == 1
    snapshot(queue, "a")
    assert delivery.ack()


def test_an_undecodable_payload_cannot_be_read_but_stays(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=PickyCodec())
    queue.offer("a", "rotten")
    with pytest.raises(UndecodablePayload, match="'a'"):
        queue.read("a")
    assert queue.contains("a")
    assert queue.stats().due == 1
    assert queue.drop("a")


def test_contains_sees_every_live_state(queue: QueueFace) -> None:
    queue.offer_batch([Message("future", 1, HOUR), Message("leased", 1, -HOUR), Message("due", 1)])
    assert claim(queue).key == "leased"
    assert all(queue.contains(key) for key in ("future", "leased", "due"))


def test_a_drop_removes_one_message_in_whatever_state(queue: QueueFace) -> None:
    queue.offer_batch([Message("future", 1, HOUR), Message("leased", 1, -HOUR), Message("due", 1)])
    holder = claim(queue)
    for key in ("future", "leased", "due"):
        assert queue.drop(key)
        assert not queue.contains(key)
        assert not queue.drop(key)
    assert not holder.ack()
    assert queue.stats() == NOTHING


def test_drop_all_removes_every_live_message(queue: QueueFace) -> None:
    queue.offer_batch([Message("future", 1, HOUR), Message("leased", 1, -HOUR), Message("due", 1)])
    holder = claim(queue)
    assert queue.drop_all("orders") == 3
    assert queue.stats() == NOTHING
    assert not holder.ack()
    assert queue.drop_all("orders") == 0


def test_drop_all_touches_nothing_unless_the_name_is_confirmed(queue: QueueFace) -> None:
    queue.offer("a", 1)
    before = everything_in(queue, "a")
    for confirm in ("", "Orders", "orders ", "yes", "%", "orders|json"):
        with pytest.raises(ValueError, match="orders"):
            queue.drop_all(confirm)
    assert everything_in(queue, "a") == before


def test_a_queue_knows_its_name(open_queue: OpenQueue) -> None:
    assert open_queue("Bestellungen für \N{FIRE}").name == "Bestellungen für \N{FIRE}"


def test_an_empty_queue_has_empty_stats(queue: QueueFace) -> None:
    assert queue.stats() == NOTHING


def test_stats_count_every_state(queue: QueueFace) -> None:
    queue.offer_batch([Message(f"b{n}", 1, -HOUR) for n in range(1)])
    claim(queue).bury("enough")
    queue.offer_batch([Message(f"l{n}", 1, -HOUR) for n in range(2)])
    assert len(queue.try_poll_many(2)) == 2
    queue.offer_batch([Message(f"d{n}", 1, -(n + 1) * MINUTE) for n in range(3)])
    queue.offer_batch([Message(f"f{n}", 1, (n + 1) * MINUTE) for n in range(4)])
    assert queue.stats() == QueueStats(
        total=9,
        due=3,
        leased=2,
        future=4,
        buried=1,
        oldest_due_at=START - 3 * MINUTE,
        next_due_at=START + MINUTE,
    )


def test_stats_follow_the_clock(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1, HOUR)
    stats = queue.stats()
    assert (stats.future, stats.next_due_at, stats.oldest_due_at) == (1, START + HOUR, None)
    clock.advance(HOUR)
    stats = queue.stats()
    assert (stats.due, stats.next_due_at, stats.oldest_due_at) == (1, None, START + HOUR)
    claim(queue)
    stats = queue.stats()
    assert (stats.leased, stats.next_due_at, stats.oldest_due_at) == (1, None, None)
    clock.advance(DEFAULT_LEASE)
    stats = queue.stats()
    assert (stats.due, stats.leased, stats.oldest_due_at) == (1, 0, START + HOUR)


def test_a_released_message_counts_as_future_until_its_delay_passed(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", 1)
    claim(queue).release(90 * SECOND)
    stats = queue.stats()
    assert (stats.future, stats.leased, stats.next_due_at) == (1, 0, START + 90 * SECOND)
    clock.advance(90 * SECOND)
    assert queue.stats().due == 1

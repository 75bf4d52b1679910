"""What waiting costs: one look per interval for all who wait, and no stampede for one message."""

from concurrent.futures import Future, wait
from datetime import timedelta
from functools import partial

import pytest

from duequeue import ManualClock, Message
from duequeue.contract.faces import DeliveryFace, QueueFace
from duequeue.contract.fixtures import Consume, OpenQueue
from duequeue.contract.ledger import Ledger, OpenCounted
from duequeue.contract.phrases import (
    DAY,
    DEFAULT_POLL_INTERVAL,
    HOUR,
    MINUTE,
    PATIENCE,
    SECOND,
    in_background,
    keys_of,
)
from duequeue.contract.stage import until, until_gone

MANY = 16
# Somebody looks once more when the line to other processes stands.
SLACK = 5

Poll = Future[DeliveryFace | None]


def looks(ledger: Ledger) -> int:
    """How often somebody looked: the reads of regular looks, and the claims."""
    return ledger["earliest_due"] + ledger["claim"]


def have_looked(ledger: Ledger, times: int) -> bool:
    return looks(ledger) >= times


def has_claimed(ledger: Ledger, times: int) -> bool:
    return ledger["next_due"] >= times


def waiting_polls(queue: QueueFace, ledger: Ledger) -> list[Poll]:
    """Many polls, each of which has looked and waits."""
    polls = []
    for number in range(1, MANY + 1):
        polls.append(in_background(queue.poll))
        # It asks for the next due time once its claim has ended and found nothing.
        until(partial(has_claimed, ledger, number))
    queue.stats()
    return polls


def key_of(poll: Poll) -> str:
    delivery = poll.result(PATIENCE)
    assert delivery is not None
    return delivery.key


def end(queue: QueueFace, polls: list[Poll]) -> None:
    queue.offer_batch([Message(str(n), n) for n in range(len(polls))])
    assert {key_of(poll) for poll in polls} == {str(n) for n in range(len(polls))}


def test_many_that_wait_look_once_per_interval(
    open_counted: OpenCounted, clock: ManualClock
) -> None:
    queue, ledger = open_counted()
    polls = waiting_polls(queue, ledger)
    before = looks(ledger)
    for number in range(1, 21):
        clock.advance(DEFAULT_POLL_INTERVAL)
        until(partial(have_looked, ledger, before + number))
    assert looks(ledger) <= before + 20 + SLACK
    end(queue, polls)


def test_small_steps_of_the_clock_make_nobody_look(
    open_counted: OpenCounted, clock: ManualClock
) -> None:
    queue, ledger = open_counted()
    polls = waiting_polls(queue, ledger)
    before = looks(ledger)
    for _ in range(100):
        clock.advance(DEFAULT_POLL_INTERVAL / 100)
    until(partial(have_looked, ledger, before + 1))
    assert looks(ledger) <= before + 1 + SLACK
    end(queue, polls)


def test_one_message_does_not_wake_everybody(open_counted: OpenCounted, clock: ManualClock) -> None:
    queue, ledger = open_counted()
    polls = waiting_polls(queue, ledger)
    before = looks(ledger)
    queue.offer("a", 1)
    found, others = wait(polls, PATIENCE, "FIRST_COMPLETED")
    assert [key_of(poll) for poll in found] == ["a"]
    # The finder, and the one who looks in its place from now on.
    until(partial(have_looked, ledger, before + 2))
    for number in range(3, 6):  # nor do the others make up for it later
        clock.advance(DEFAULT_POLL_INTERVAL)
        until(partial(have_looked, ledger, before + number))
    assert looks(ledger) <= before + 5 + SLACK
    end(queue, list(others))


def test_an_idle_minute_costs_a_handful_of_reads(
    open_counted: OpenCounted, consume: Consume, clock: ManualClock
) -> None:
    queue, ledger = open_counted()
    for _ in range(3):
        consume(queue)
    until(partial(have_looked, ledger, 3))
    queue.stats()
    before, looked = dict(ledger), looks(ledger)
    intervals = MINUTE // DEFAULT_POLL_INTERVAL
    for number in range(1, intervals + 1):
        clock.advance(DEFAULT_POLL_INTERVAL)
        until(partial(have_looked, ledger, looked + number))
    spent = {name: ledger[name] - before.get(name, 0) for name in ledger}
    assert sum(spent.values()) <= intervals + 2 * SLACK
    assert spent["claim"] <= SLACK


def test_whoever_finds_something_leaves_the_next_due_time_to_another(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(poll_interval=DAY)
    queue.offer_batch([Message("first", 1, HOUR), Message("second", 1, HOUR + SECOND)])
    polls = [in_background(partial(queue.poll_many, 100)) for _ in range(2)]
    clock.advance(HOUR)
    found, others = wait(polls, PATIENCE, "FIRST_COMPLETED")
    assert [keys_of(poll.result()) for poll in found] == [["first"]]
    clock.advance(SECOND)
    assert [keys_of(poll.result(PATIENCE)) for poll in others] == [["second"]]


@pytest.mark.parametrize("jump", [-DAY, DAY])
def test_a_waiting_consumer_outlives_a_jump_of_the_clock(
    queue: QueueFace, consume: Consume, clock: ManualClock, jump: timedelta
) -> None:
    handled: list[str] = []
    queue.offer("later", 1, HOUR)
    consume(queue, lambda delivery: handled.append(delivery.key))
    clock.advance(jump)
    queue.offer("now", 1)
    until_gone(queue, "now")
    if jump < 0 * SECOND:
        assert handled == ["now"]
        clock.advance(-jump + HOUR)
    until(lambda: sorted(handled) == ["later", "now"])

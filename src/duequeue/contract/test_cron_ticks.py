"""Ticks put in by hand: what an installation removes, what it leaves, and what it never repeats."""

from datetime import timedelta

import pytest

from duequeue import ConfigHash, CronMessage, ManualClock
from duequeue.contract.cron_phrases import (
    ONE,
    TWO,
    after,
    assert_holds,
    key_of,
    keys,
    messages,
    run_everything_due,
)
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import DAY, HOUR, MILLISECOND, MINUTE, claim, keys_of, snapshot
from duequeue.port.cron_table import REMEMBERED
from duequeue.schedules.tick import MAX_PREFIX_LENGTH


def test_ticks_come_when_they_are_due(queue: QueueFace, clock: ManualClock) -> None:
    assert queue.cron.install_tick(ONE, "reports", messages(1, 2)) == 2
    assert queue.try_poll() is None
    clock.advance(MINUTE)
    delivery = claim(queue)
    assert delivery.key == "reports/one/2026-03-01T12:01:00.000Z"
    assert (delivery.payload, delivery.due_at) == ("hello", START + MINUTE)
    assert queue.try_poll() is None


def test_delivery_may_come_at_another_time_than_the_key_says(
    queue: QueueFace, clock: ManualClock
) -> None:
    at = START + DAY
    queue.cron.install_tick(ONE, "reports", [CronMessage("early", at, START + MINUTE)])
    clock.advance(MINUTE)
    delivery = claim(queue)
    assert (delivery.key, delivery.due_at) == (key_of(at), START + MINUTE)


def test_instants_are_floored_to_the_millisecond(queue: QueueFace) -> None:
    at = START + timedelta(microseconds=1_999)
    queue.cron.install_tick(ONE, "reports", [CronMessage("a", at)])
    queue.cron.install_tick(ONE, "reports", [CronMessage("a", START + MILLISECOND)])
    assert_holds(queue, [key_of(START + MILLISECOND)])


def test_another_configuration_replaces_the_ticks(queue: QueueFace) -> None:
    queue.cron.install_tick(ONE, "reports", messages(1, 2))
    assert queue.cron.install_tick(TWO, "reports", messages(2, 3)) == 2
    assert_holds(queue, keys(after(2, 3), TWO))


def test_ticks_of_the_same_configuration_stay(queue: QueueFace) -> None:
    queue.cron.install_tick(ONE, "reports", messages(5))
    queue.cron.install_tick(ONE, "reports", messages(3))
    assert queue.cron.install_tick(ONE, "reports", messages(3, 4)) == 1
    assert_holds(queue, keys(after(3, 4, 5)))


def test_no_ticks_is_a_configuration_too(queue: QueueFace) -> None:
    queue.cron.install_tick(ONE, "reports", messages(1))
    assert queue.cron.install_tick(TWO, "reports", []) == 0
    assert_holds(queue, [])


def test_a_new_payload_replaces_the_old_one(queue: QueueFace) -> None:
    queue.cron.install_tick(ONE, "reports", messages(1, payload="old"))
    assert queue.cron.install_tick(ONE, "reports", messages(1, payload="new")) == 0
    assert snapshot(queue, key_of(START + MINUTE)).payload == "new"


def test_a_tick_given_twice_is_one_tick_and_the_later_counts(queue: QueueFace) -> None:
    twice = [*messages(1, payload="first"), *messages(1, payload="second")]
    assert queue.cron.install_tick(ONE, "reports", twice) == 1
    assert snapshot(queue, key_of(START + MINUTE)).payload == "second"


@pytest.mark.parametrize("replaced_by", [ONE, TWO], ids=["the same", "another"])
def test_a_leased_tick_is_left_alone(queue: QueueFace, replaced_by: ConfigHash) -> None:
    queue.cron.install_tick(ONE, "reports", messages(0, payload="old"))
    delivery = claim(queue)
    queue.cron.install_tick(replaced_by, "reports", messages(0, payload="new"))
    assert snapshot(queue, delivery.key).payload == "old"
    assert delivery.ack()


def test_a_revived_tick_was_delivered_and_is_left_alone(queue: QueueFace) -> None:
    queue.cron.install_tick(ONE, "reports", [CronMessage("old", START)])
    delivery = claim(queue)
    assert delivery.bury("enough")
    assert queue.revive(delivery.key)
    queue.cron.install_tick(TWO, "reports", messages(1))
    assert queue.cron.pause("reports")
    assert snapshot(queue, delivery.key).payload == "old"
    queue.cron.resume("reports")
    queue.cron.install_tick(ONE, "reports", [CronMessage("new", START)])
    assert snapshot(queue, delivery.key).payload == "old"
    assert claim(queue).ack()
    queue.cron.install_tick(ONE, "reports", [CronMessage("again", START)])
    assert queue.try_poll() is None


def test_a_released_tick_was_delivered_and_is_left_alone(queue: QueueFace) -> None:
    queue.cron.install_tick(ONE, "reports", messages(0, payload="old"))
    delivery = claim(queue)
    assert delivery.release(HOUR)
    queue.cron.install_tick(ONE, "reports", messages(0, payload="new"))
    queue.cron.install_tick(TWO, "reports", [])
    assert snapshot(queue, delivery.key).payload == "old"


LOOKALIKES = [
    "daily_job",
    "dailyXjob",
    "reports",
    "reports/daily",
    "reports/one",
    "Tick",
    "tick",
    "tick ",
    "%",
    "t%",
    "tíck",
    "reports/one/2026-03-01T12:01:00.000Z",
]


@pytest.mark.parametrize("prefix", LOOKALIKES)
def test_a_prefix_matches_by_equality(queue: QueueFace, prefix: str) -> None:
    for each in LOOKALIKES:
        queue.cron.install_tick(ONE, each, messages(1, 2))
    others = [each for each in LOOKALIKES if each != prefix]
    spared = [key for each in others for key in keys(after(1, 2), ONE, each)]

    assert queue.cron.install_tick(TWO, prefix, messages(1)) == 1
    assert_holds(queue, [*spared, *keys(after(1), TWO, prefix)])
    assert queue.cron.pause(prefix)
    assert_holds(queue, spared)
    assert queue.cron.resume(prefix)
    queue.cron.install_tick(ONE, prefix, messages(3))
    assert queue.cron.uninstall_tick(ONE, prefix) == 1
    assert_holds(queue, spared)


def test_a_slash_in_the_prefix_is_not_the_end_of_it(queue: QueueFace) -> None:
    """`a/b` with hash `c` and `a` with hash `b` look alike in a key; in the table they do not."""
    queue.cron.install_tick(ConfigHash("c"), "a/b", messages(1))
    queue.cron.install_tick(ConfigHash("b"), "a", messages(1))
    queue.cron.install_tick(ConfigHash("other"), "a", [])
    assert_holds(queue, keys(after(1), ConfigHash("c"), "a/b"))


def test_queues_do_not_see_each_others_ticks(open_queue: OpenQueue) -> None:
    ours, theirs = open_queue("ours"), open_queue("theirs")
    ours.cron.install_tick(ONE, "reports", messages(1))
    theirs.cron.install_tick(TWO, "reports", messages(1))
    assert theirs.cron.uninstall_tick(ONE, "reports") == 0
    assert_holds(ours, keys(after(1)))
    assert [each.config_hash for each in ours.cron.list()] == [ONE]


def test_a_message_that_only_looks_like_a_tick_is_none(queue: QueueFace) -> None:
    lookalike = key_of(START + HOUR, TWO)
    queue.offer(lookalike, "mine", HOUR)
    queue.cron.install_tick(ONE, "reports", messages(1))
    queue.cron.uninstall_tick(TWO, "reports")
    assert_holds(queue, [lookalike, key_of(START + MINUTE)])


def test_uninstalling_removes_exactly_these(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_tick(ONE, "reports", messages(0, 1, 2))
    leased = claim(queue)
    assert queue.cron.uninstall_tick(TWO, "reports") == 0
    assert queue.cron.uninstall_tick(ONE, "report") == 0
    assert queue.cron.uninstall_tick(ONE, "reports") == 2
    assert queue.cron.uninstall_tick(ONE, "reports") == 0
    assert_holds(queue, [leased.key])
    assert leased.ack()


def test_ticks_may_be_installed_again(queue: QueueFace) -> None:
    queue.cron.install_tick(ONE, "reports", messages(1))
    queue.cron.install_tick(TWO, "reports", [])
    queue.cron.install_tick(ONE, "reports", messages(1))
    assert_holds(queue, keys(after(1)))
    queue.cron.uninstall_tick(ONE, "reports")
    queue.cron.install_tick(ONE, "reports", messages(1))
    assert_holds(queue, keys(after(1)))


@pytest.mark.parametrize("end", ["ack", "bury", "drop"])
def test_a_tick_that_ran_is_never_created_again(
    open_queue: OpenQueue, clock: ManualClock, end: str
) -> None:
    queue = open_queue()
    queue.cron.install_tick(ONE, "reports", messages(1))
    clock.advance(MINUTE)
    delivery = claim(queue)
    match end:
        case "ack":
            assert delivery.ack()
        case "bury":
            assert delivery.bury("enough")
        case _:
            assert queue.drop(delivery.key)
    clock.set(START - HOUR)
    assert queue.cron.install_tick(ONE, "reports", messages(1)) == 0
    assert open_queue().cron.install_tick(ONE, "reports", messages(1)) == 0
    queue.cron.install_tick(TWO, "reports", [])
    queue.cron.uninstall_tick(ONE, "reports")
    assert queue.cron.install_tick(ONE, "reports", messages(1, 2)) == 1
    assert_holds(queue, keys(after(2)))


def test_what_ran_is_remembered_beyond_what_is_kept_one_by_one(
    queue: QueueFace, clock: ManualClock
) -> None:
    minutes = range(3 * REMEMBERED)
    queue.cron.install_tick(ONE, "reports", messages(*minutes))
    clock.advance(3 * REMEMBERED * MINUTE)
    assert len(run_everything_due(queue)) == 3 * REMEMBERED
    for later in range(3):
        queue.cron.install_tick(ONE, "reports", messages(3 * REMEMBERED + later))
    assert queue.cron.install_tick(ONE, "reports", messages(*minutes)) == 0
    queue.cron.install_tick(TWO, "reports", [])
    assert queue.cron.install_tick(ONE, "reports", messages(*minutes)) == 0
    # Another configuration has a memory of its own.
    assert queue.cron.install_tick(TWO, "reports", messages(*minutes)) == 3 * REMEMBERED


def test_what_was_not_delivered_is_not_forgotten(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_tick(ONE, "reports", messages(*range(2 * REMEMBERED)))
    clock.advance(2 * REMEMBERED * MINUTE)
    queue.cron.install_tick(ONE, "reports", messages(2 * REMEMBERED))
    assert len(run_everything_due(queue)) == 2 * REMEMBERED + 1


def test_past_ticks_are_due_at_once(queue: QueueFace) -> None:
    queue.cron.install_tick(ONE, "reports", messages(-2, -1))
    assert keys_of(queue.try_poll_many(5)) == keys(after(-2, -1))


def test_many_ticks_are_one_transaction(queue: QueueFace) -> None:
    assert queue.cron.install_tick(ONE, "reports", messages(*range(1, 2501))) == 2500
    assert queue.stats().future == 2500
    queue.cron.install_tick(TWO, "reports", messages(1))
    assert_holds(queue, keys(after(1), TWO))


def test_what_ran_is_remembered_after_a_restart(open_queue: OpenQueue, shared_url: str) -> None:
    with open_queue() as queue:
        queue.cron.install_tick(ONE, "reports", messages(0, 1))
        assert run_everything_due(queue) == keys(after(0))
    with open_queue() as queue:
        assert queue.cron.install_tick(ONE, "reports", messages(0, 1, 2)) == 1
        assert_holds(queue, keys(after(1, 2)))


@pytest.mark.parametrize("prefix", ["a/b", "/", "a//b", "/a", "a/", "p" * MAX_PREFIX_LENGTH, "é "])
def test_odd_prefixes_are_prefixes(queue: QueueFace, prefix: str) -> None:
    long_hash = ConfigHash("h" * 64)
    assert queue.cron.install_tick(long_hash, prefix, messages(1)) == 1
    assert queue.cron.list()[0].prefix == prefix
    assert queue.cron.uninstall_tick(long_hash, prefix) == 1
    assert queue.stats().total == 0

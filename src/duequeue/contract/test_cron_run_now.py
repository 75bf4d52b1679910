"""`cron.run_now` puts in one extra message per call, which does not disturb the ticks."""

from datetime import datetime

import pytest

from duequeue import CronMessage, Daily, ManualClock, Misfire, parse_tick_key
from duequeue.contract.cron_phrases import ONE, assert_holds, periodic_keys, run_everything_due
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import DAY, HOUR, MINUTE, claim
from duequeue.schedules.tick import MAX_PREFIX_LENGTH


def test_one_message_per_call_is_due_now(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_periodic_tick("reports", HOUR, {"of": "sales"}, headers={"tenant": "seven"})
    assert queue.try_poll() is None
    assert queue.cron.run_now("reports")
    delivery = claim(queue)
    assert (delivery.payload, delivery.headers) == ({"of": "sales"}, {"tenant": "seven"})
    assert delivery.due_at == START
    assert delivery.key.startswith("reports/run-now/2026-03-01T12:00:00.000Z/")
    assert queue.try_poll() is None
    assert delivery.ack()
    assert [queue.cron.run_now("reports") for _ in range(3)] == [True] * 3
    assert len(set(run_everything_due(queue))) == 3


def test_a_function_is_given_the_present_instant(queue: QueueFace, clock: ManualClock) -> None:
    asked: list[datetime] = []

    def payload(at: datetime) -> str:
        asked.append(at)
        return at.isoformat()

    queue.cron.install_daily_schedule("reports", Daily(["07:00"]), payload, jitter=HOUR)
    asked.clear()
    clock.advance(7 * MINUTE)
    assert queue.cron.run_now("reports")
    assert asked == [START + 7 * MINUTE]
    assert claim(queue).payload == (START + 7 * MINUTE).isoformat()


def test_a_tick_of_the_same_instant_comes_too(queue: QueueFace, clock: ManualClock) -> None:
    everything = Misfire.fire_all(100)
    queue.cron.install_periodic_tick("reports", MINUTE, "hello", misfire=everything)
    clock.advance(MINUTE)
    assert queue.cron.run_now("reports")
    ran = run_everything_due(queue)
    assert len(ran) == 2
    assert periodic_keys(1)[0] in ran
    assert_holds(queue, periodic_keys(2, 3, 4, 5))


def test_it_is_not_a_tick(queue: QueueFace) -> None:
    queue.cron.install_periodic_tick("reports", MINUTE, "hello")
    before = queue.cron.list()
    queue.cron.run_now("reports")
    assert queue.cron.list() == before
    delivery = claim(queue)
    with pytest.raises(ValueError, match="key is not"):
        parse_tick_key(delivery.key)


def test_no_cron_takes_it_away(open_queue: OpenQueue) -> None:
    queue, other = open_queue(), open_queue()
    queue.cron.install_periodic_tick("reports", MINUTE, "old")
    queue.cron.run_now("reports")
    other.cron.install_periodic_tick("reports", HOUR, "new")
    other.cron.pause("reports")
    other.cron.uninstall_tick(other.cron.list()[0].config_hash, "reports")
    assert claim(queue).payload == "old"


def test_a_paused_cron_can_run_now(queue: QueueFace) -> None:
    queue.cron.install_periodic_tick("reports", MINUTE, "hello")
    queue.cron.pause("reports")
    assert queue.cron.run_now("reports")
    assert len(run_everything_due(queue)) == 1


def test_a_finished_cron_can_run_now(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_periodic_tick("reports", MINUTE, "hello", until=START)
    clock.advance(DAY)
    assert queue.cron.run_now("reports")
    assert claim(queue).payload == "hello"


@pytest.mark.parametrize("change", ["uninstalled", "replaced"])
def test_what_another_node_has_ended_does_not_run(open_queue: OpenQueue, change: str) -> None:
    queue, other = open_queue(), open_queue()
    queue.cron.install_periodic_tick("reports", HOUR, "old")
    if change == "replaced":
        other.cron.install_periodic_tick("reports", DAY, "new")
    else:
        other.cron.uninstall_tick(other.cron.list()[0].config_hash, "reports")
    assert not queue.cron.run_now("reports")
    assert queue.try_poll() is None


def test_the_configuration_that_was_installed_last_runs(queue: QueueFace) -> None:
    for hours in (1, 2, 3):
        queue.cron.install_periodic_tick("reports", hours * HOUR, hours)
    assert queue.cron.run_now("reports")
    assert claim(queue).payload == 3


def test_only_what_is_installed_here_can_run(open_queue: OpenQueue) -> None:
    queue, other = open_queue(), open_queue()
    handle = other.cron.install_periodic_tick("reports", HOUR, "hello")
    with pytest.raises(ValueError, match=r"'reports' is not installed through this queue.*offer"):
        queue.cron.run_now("reports")
    handle.close()
    with pytest.raises(ValueError, match="'reports' is not installed"):
        other.cron.run_now("reports")
    assert queue.try_poll() is None


def test_the_users_own_function_has_no_payload_to_run(queue: QueueFace) -> None:
    queue.cron.install(ONE, "reports", HOUR, lambda now: [CronMessage("a", now + HOUR)])
    with pytest.raises(ValueError, match="offer the message yourself"):
        queue.cron.run_now("reports")


def test_an_error_of_the_payload_is_raised(queue: QueueFace) -> None:
    def payload(at: datetime) -> str:
        if at == START:
            raise LookupError("no figures yet")
        return "hello"

    queue.cron.install_periodic_tick("reports", MINUTE, payload)
    with pytest.raises(LookupError, match="no figures yet"):
        queue.cron.run_now("reports")


def test_the_longest_prefix_can_run(queue: QueueFace) -> None:
    prefix = "p" * MAX_PREFIX_LENGTH
    queue.cron.install_periodic_tick(prefix, HOUR, "hello")
    assert queue.cron.run_now(prefix)
    assert claim(queue).key.startswith(f"{prefix}/run-now/")

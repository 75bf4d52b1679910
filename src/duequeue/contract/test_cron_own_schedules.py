"""Schedules that a user wrote are installed like ours, and do no harm when they fail."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from duequeue import ConfigHash, Crontab, Daily, Every, ManualClock, Misfire, Schedule
from duequeue.contract.cron_phrases import (
    EVERY_MINUTE,
    ONE,
    after,
    assert_holds,
    keys,
    logged,
    periodic_keys,
    run_everything_due,
)
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import DAY, HOUR, MINUTE, SECOND, claim


class EverySecondMinute:
    """A schedule of the kind that a user writes, with nothing but the one method."""

    def next_after(self, instant: datetime) -> datetime:
        return Every(2 * MINUTE).next_after(instant)


@dataclass
class Named:
    """A schedule that cannot be hashed by Python, but has a text."""

    text: str

    def next_after(self, instant: datetime) -> datetime:
        return Every(MINUTE).next_after(instant)


class Answering:
    """A schedule that answers as a test wants, and counts how often it was asked."""

    def __init__(self, answer: Callable[[datetime], Any]) -> None:
        self.answer = answer
        self.asked = 0

    def next_after(self, instant: datetime) -> datetime:
        self.asked += 1
        return cast("datetime", self.answer(instant))


def raise_it(error: BaseException) -> Any:
    raise error


BAD_ANSWERS: dict[str, tuple[Callable[[datetime], Any], type[Exception], str]] = {
    "naive": (lambda at: (at + HOUR).replace(tzinfo=None), ValueError, "with a zone"),
    "the same instant": (lambda at: at, ValueError, "must return a later instant"),
    "an earlier instant": (lambda at: at - HOUR, ValueError, "must return a later instant"),
    "nothing": (lambda _: None, TypeError, "must return a datetime, not None"),
    "a text": (lambda _: "tomorrow", TypeError, "must return a datetime, not 'tomorrow'"),
    "an error": (lambda _: raise_it(LookupError("no calendar")), LookupError, "no calendar"),
    "an exit": (lambda _: raise_it(SystemExit(1)), RuntimeError, "SystemExit"),
}


def test_a_schedule_of_ones_own_is_installed(queue: QueueFace, clock: ManualClock) -> None:
    handle = queue.cron.install_schedule(
        "reports", EverySecondMinute(), lambda at: at.minute, config_hash=ONE
    )
    assert_holds(queue, keys(after(2, 4, 6, 8)))
    assert handle.active
    (status,) = queue.cron.list()
    assert (status.config_hash, status.schedule) == (ONE, "EverySecondMinute")
    clock.advance(2 * MINUTE)
    assert claim(queue).payload == 2
    assert_holds(queue, keys(after(2, 4, 6, 8, 10)))


@pytest.mark.argument_checks
def test_without_a_text_it_needs_a_hash(queue: QueueFace) -> None:
    with pytest.raises(TypeError, match=r"config_hash=ConfigHash\('…'\)"):
        queue.cron.install_schedule("reports", EverySecondMinute(), 1)
    with pytest.raises(TypeError, match=r"config_hash=ConfigHash\('…'\)"):
        queue.cron.install_schedule("reports", EverySecondMinute(), 1, until=START + DAY)
    with pytest.raises(TypeError, match="config_hash must be a ConfigHash"):
        queue.cron.install_schedule(
            "reports", EverySecondMinute(), 1, config_hash=cast("Any", "one")
        )
    assert (queue.stats().total, queue.cron.list()) == (0, [])


def test_its_text_makes_its_hash(queue: QueueFace) -> None:
    queue.cron.install_schedule("reports", Named("every minute"), "hello")
    assert_holds(queue, periodic_keys(1, 2, 3, 4))
    (status,) = queue.cron.list()
    assert (status.config_hash, status.schedule) == (EVERY_MINUTE, "every minute")


@pytest.mark.parametrize(
    "schedule", [Every(HOUR), Daily(["07:00"], "Europe/Berlin"), Crontab("@hourly")], ids=repr
)
def test_ours_are_installed_like_by_their_own_methods(
    open_queue: OpenQueue, schedule: Daily | Every | Crontab
) -> None:
    first, second = open_queue(), open_queue("others")
    first.cron.install_schedule("reports", schedule, "hello")
    match schedule:
        case Every(period):
            second.cron.install_periodic_tick("reports", period, "hello")
        case Daily():
            second.cron.install_daily_schedule("reports", schedule, "hello")
        case Crontab():
            second.cron.install_expression("reports", schedule, "hello")
    assert first.cron.list() == second.cron.list()
    assert first.stats() == second.stats()


def test_ticks_within_one_millisecond_are_one(queue: QueueFace) -> None:
    tiny = timedelta(microseconds=400)
    schedule = Answering(lambda at: at + tiny)
    queue.cron.install_schedule("reports", schedule, "hello", config_hash=ONE)
    expected = [START + timedelta(milliseconds=number) for number in (1, 2, 3, 4)]
    assert_holds(queue, keys(expected))


def test_missed_ticks_are_made_up_for(open_queue: OpenQueue, clock: ManualClock) -> None:
    queue = open_queue()
    policy = Misfire.fire_all(3)
    schedule: Schedule = EverySecondMinute()
    queue.cron.install_schedule(
        "reports", schedule, "hello", config_hash=ONE, misfire=policy
    ).close()
    clock.advance(20 * MINUTE)
    queue.cron.install_schedule("reports", schedule, "hello", config_hash=ONE, misfire=policy)
    assert run_everything_due(queue) == keys(after(2, 4, 6, 8, 16, 18, 20))


@pytest.mark.argument_checks
@pytest.mark.parametrize(("answer", "error", "words"), BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_a_mistake_is_raised_by_the_installation(
    queue: QueueFace, answer: Callable[[datetime], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        queue.cron.install_schedule("reports", Answering(answer), 1, config_hash=ONE)
    assert (queue.stats().total, queue.cron.list()) == (0, [])


@pytest.mark.argument_checks
def test_what_has_no_next_after_is_refused(queue: QueueFace) -> None:
    with pytest.raises(TypeError, match="method next_after"):
        queue.cron.install_schedule("reports", cast("Any", "@daily"), 1)


@pytest.mark.parametrize(("answer", "error", "words"), BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_a_later_mistake_is_logged_and_does_not_spin(
    queue: QueueFace,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
    answer: Callable[[datetime], Any],
    error: type[Exception],
    words: str,
) -> None:
    schedule = Answering(Every(MINUTE).next_after)
    handle = queue.cron.install_schedule("reports", schedule, "hello", config_hash=ONE)
    queue.cron.install_periodic_tick("others", MINUTE, "hello")
    schedule.answer = answer
    clock.advance(MINUTE)
    assert queue.contains(periodic_keys(5, prefix="others")[0])
    asked, lines = schedule.asked, logged(caplog)
    assert [line for line in lines if "'reports'" in line and "will be repeated" in line] == lines
    assert len(lines) == 1
    for _ in range(100):
        queue.contains("reports")
    assert (schedule.asked, logged(caplog)) == (asked, lines)
    schedule.answer = Every(MINUTE).next_after
    clock.advance(10 * SECOND)
    assert_holds(queue, keys(after(1, 2, 3, 4, 5)) + periodic_keys(1, 2, 3, 4, 5, prefix="others"))
    assert handle.active
    assert ConfigHash("one") == queue.cron.list()[1].config_hash

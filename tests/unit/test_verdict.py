"""Verdicts: a pure function of what a handler returned or raised."""

from datetime import timedelta
from typing import Any

import pytest

from duequeue import Backoff, Bury, Retry
from duequeue.verdict import Acked, Parked, Released, Rules, as_raised, judge

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)

ENDLESS = Rules(Backoff(first=10 * SECOND, longest=60 * SECOND, factor=2), None)
THREE_TIMES = ENDLESS._replace(max_attempts=3)


@pytest.mark.parametrize("outcome", [None, 0, False, "", "done", [], object(), int, Backoff])
def test_whatever_else_is_returned_means_handled(outcome: object) -> None:
    assert judge(as_raised(outcome), 1, THREE_TIMES) == Acked()


@pytest.mark.parametrize("attempt", [1, 3, 100])
def test_a_burial_is_a_burial_at_any_attempt(attempt: int) -> None:
    assert judge(Bury("enough"), attempt, THREE_TIMES) == Parked("enough")


def test_a_retry_names_its_own_delay() -> None:
    assert judge(Retry(HOUR), 1, ENDLESS) == Released(HOUR)
    assert judge(Retry(0 * SECOND), 7, ENDLESS) == Released(0 * SECOND)


class LaterOrNever(Bury):
    """An exception whose class cannot be called without arguments, and raises something odd."""

    def __init__(self) -> None:
        raise KeyError("odd")


@pytest.mark.parametrize(
    "outcome",
    [Retry(), Retry, ValueError("boom"), ValueError, SystemExit(1), SystemExit, Bury, LaterOrNever],
)
@pytest.mark.parametrize(
    ("attempt", "longest"), [(1, 10), (2, 20), (3, 40), (4, 60), (5, 60), (10_000, 60)]
)
def test_a_failure_waits_for_the_backoff(outcome: object, attempt: int, longest: int) -> None:
    delays = set[timedelta]()
    for _ in range(50):
        verdict = judge(as_raised(outcome), attempt, ENDLESS)
        assert isinstance(verdict, Released)
        delays.add(verdict.delay)
    assert all(longest * SECOND / 2 <= delay <= longest * SECOND for delay in delays)
    assert len(delays) > 1  # jittered


class InSeconds(Backoff):
    """A backoff of somebody who did not read what `delay` returns."""

    def delay(self, attempt: int) -> Any:
        return 0.5 * attempt


def test_a_backoff_that_is_no_timedelta_is_told_of() -> None:
    with pytest.raises(TypeError, match="the backoff's delay must be a timedelta, not float"):
        judge(ValueError("boom"), 1, Rules(InSeconds(), None))


@pytest.mark.parametrize("outcome", [Retry(HOUR), Retry(), ValueError("boom")])
def test_the_last_attempt_is_buried(outcome: object) -> None:
    assert isinstance(judge(outcome, 2, THREE_TIMES), Released)
    assert isinstance(judge(outcome, 3, THREE_TIMES), Parked)
    assert isinstance(judge(outcome, 4, THREE_TIMES), Parked)


def test_the_reason_shows_where_it_failed_and_why() -> None:
    def charge_the_card() -> None:
        try:
            raise TimeoutError("no answer")  # noqa: TRY301 - the cause is the point
        except TimeoutError as error:
            raise ConnectionError("the bank is closed") from error

    with pytest.raises(ConnectionError) as raised:
        charge_the_card()
    verdict = judge(raised.value, 3, THREE_TIMES)
    assert isinstance(verdict, Parked)
    first, *_ = verdict.reason.splitlines()
    assert first == "max_attempts: failed 3 times, the last time with"
    for words in ("in charge_the_card", "TimeoutError: no answer", "the bank is closed"):
        assert words in verdict.reason


def test_a_class_that_cannot_be_raised_as_it_is_says_so_in_the_reason() -> None:
    verdict = judge(as_raised(Bury), 3, THREE_TIMES)
    assert isinstance(verdict, Parked)
    assert "the handler returned the class Bury, which cannot be raised as it is" in verdict.reason
    assert "missing 1 required positional argument: 'reason'" in verdict.reason


def test_a_class_of_ones_own_is_what_it_makes() -> None:
    class NoMoney(Bury):
        def __init__(self) -> None:
            super().__init__("no money left")

    assert judge(as_raised(NoMoney), 1, ENDLESS) == Parked("no money left")


def test_an_error_that_cannot_be_told_is_buried_all_the_same() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    verdict = judge(Unspeakable(), 3, THREE_TIMES)
    assert isinstance(verdict, Parked)
    assert "Unspeakable" in verdict.reason


@pytest.mark.parametrize("delay", [5, 1.5, "1h"])
def test_a_delay_is_a_timedelta(delay: Any) -> None:
    with pytest.raises(TypeError, match="delay must be a timedelta"):
        Retry(delay)


def test_a_delay_is_not_negative() -> None:
    with pytest.raises(ValueError, match="delay must not be negative"):
        Retry(-SECOND)


@pytest.mark.parametrize("reason", [None, 5, ValueError("boom")])
def test_a_reason_is_text(reason: Any) -> None:
    with pytest.raises(TypeError, match="reason must be a str"):
        Bury(reason)


def test_they_read_well() -> None:
    assert str(Retry()) == "retry after the usual backoff"
    assert str(Retry(HOUR)) == "retry after 1:00:00"
    assert str(Retry(0 * SECOND)) == "retry after 0:00:00"
    assert str(Bury("enough")) == "enough"

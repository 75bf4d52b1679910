"""Pauses between tries: growing, jittered, and over when the budget is."""

import sys
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from math import inf, nan
from time import monotonic
from typing import Any

import pytest

from duequeue import Backoff, RetryPolicy
from duequeue import retry_policy as retry_policy_module
from duequeue.contract.logs import messages_of
from duequeue.drive import retrying as retrying_module
from duequeue.drive.actions import Action, Pause, Run
from duequeue.drive.retrying import LEAST_SECONDS, retrying
from duequeue.drive.steps import at_once
from duequeue.errors import StoreError, StoreUnavailable
from duequeue.retry_policy import LONGEST_TRY, SHORTEST_TRY

SECOND = timedelta(seconds=1)
NOTHING = at_once(lambda: None)


def test_pauses_grow_to_the_longest() -> None:
    policy = RetryPolicy(budget=3600 * SECOND, first=SECOND, longest=10 * SECOND)
    ceilings = [1, 2, 4, 8, 10, 10]
    for pause, ceiling in zip(policy.pauses(), ceilings, strict=False):
        assert ceiling / 2 <= pause <= ceiling


def test_pauses_are_jittered() -> None:
    policy = RetryPolicy(budget=3600 * SECOND, first=SECOND)
    assert len({next(policy.pauses()) for _ in range(20)}) > 10


def test_no_pause_is_longer_than_what_is_left() -> None:
    policy = RetryPolicy(budget=SECOND / 10, first=3600 * SECOND, longest=3600 * SECOND)
    assert 0 < next(policy.pauses()) <= 0.1


def test_the_budget_runs_from_the_first_try() -> None:
    policy = RetryPolicy(budget=timedelta(milliseconds=1))
    pauses = policy.pauses()
    began = monotonic()
    while monotonic() - began < 0.002:
        pass
    assert next(pauses, None) is None


def test_never_means_one_try() -> None:
    assert list(RetryPolicy.never().pauses()) == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"budget": -SECOND}, "budget must not be negative"),
        ({"first": 0 * SECOND}, "first must be at least one millisecond"),
        ({"longest": 0 * SECOND}, "longest must be at least one millisecond"),
        ({"factor": 0.5}, "factor must be at least 1"),
        ({"factor": nan}, "factor must be at least 1"),
        ({"factor": inf}, "factor must be at least 1, and finite"),
        ({"factor": -inf}, "factor must be at least 1"),
        ({"factor": 10**400}, "factor must be at least 1, and finite"),
    ],
)
def test_nonsense_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        RetryPolicy(**options)
    if "budget" not in options:
        with pytest.raises(ValueError, match=reason):
            Backoff(**options)


@pytest.mark.parametrize("policy", [Backoff, RetryPolicy])
@pytest.mark.parametrize("factor", [True, "2", None, 2j, SECOND, Decimal(2)])
def test_a_factor_is_a_number(policy: Callable[..., object], factor: object) -> None:
    with pytest.raises(TypeError, match="factor must be a number"):
        policy(factor=factor)


def test_the_largest_factor_does_not_overflow() -> None:
    largest = sys.float_info.max
    assert Backoff(factor=largest).delay(3) <= timedelta(hours=1)
    pauses = RetryPolicy(factor=largest).pauses()
    assert all(0 < next(pauses) <= 2 for _ in range(3))


def test_a_budget_is_a_duration() -> None:
    thirty: Any = 30
    with pytest.raises(TypeError, match="budget must be a timedelta"):
        RetryPolicy(budget=thirty)


def test_delays_between_deliveries_grow_and_do_not_overflow() -> None:
    backoff = Backoff(first=SECOND, longest=60 * SECOND)
    for attempt, ceiling in [(1, 1), (2, 2), (3, 4), (7, 60), (10_000, 60)]:
        assert ceiling / 2 <= backoff.delay(attempt).total_seconds() <= ceiling


def test_only_the_unavailable_is_tried_again() -> None:
    policy = RetryPolicy(budget=3600 * SECOND)
    flow = retrying(policy, NOTHING)
    assert next(flow) == Run(NOTHING, LONGEST_TRY, consumes=False)
    assert isinstance(flow.throw(StoreUnavailable("later")), Pause)
    assert flow.send(None) == Run(NOTHING, LONGEST_TRY, consumes=False)
    with pytest.raises(StoreError, match="no"):
        flow.throw(StoreError("no"))


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_interruptions_are_never_tried_again(interruption: type[BaseException]) -> None:
    flow = retrying(RetryPolicy(), NOTHING)
    next(flow)
    with pytest.raises(interruption):
        flow.throw(interruption())


def test_the_last_error_is_raised_when_the_budget_is_spent() -> None:
    flow = retrying(RetryPolicy.never(), NOTHING)
    next(flow)
    with pytest.raises(StoreUnavailable, match="the last word"):
        flow.throw(StoreUnavailable("the last word"))


def test_a_call_that_is_retried_for_long_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    began = monotonic()
    now = began
    monkeypatch.setattr(retrying_module, "monotonic", lambda: now)
    flow = retrying(RetryPolicy(budget=3600 * SECOND), NOTHING)
    next(flow)
    for now in (began + 0.9, began + 1.1, began + 9):  # noqa: B007 - what the clock shows
        flow.throw(StoreUnavailable("nobody answers"))
        flow.send(None)
    (message,) = messages_of("duequeue", caplog)
    assert message == "nobody answers; trying again for up to 1:00:00 in total"


@pytest.mark.parametrize(
    ("budget", "seconds"),
    [(0, LONGEST_TRY), (1, SHORTEST_TRY), (12, 4), (30, LONGEST_TRY), (3600, LONGEST_TRY)],
)
def test_no_try_takes_the_whole_budget(budget: int, seconds: float) -> None:
    policy = RetryPolicy(budget=budget * SECOND)
    assert policy.try_seconds == seconds
    assert seconds_of(next(retrying(policy, NOTHING))) == seconds


def test_a_call_that_must_end_soon_shortens_its_tries_and_makes_no_late_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = monotonic()
    monkeypatch.setattr(retrying_module, "monotonic", lambda: now)
    monkeypatch.setattr(retry_policy_module, "monotonic", lambda: now)
    flow = retrying(RetryPolicy(), NOTHING, gives_up_at=now + 8)
    assert seconds_of(next(flow)) == 8
    now += 4
    assert isinstance(flow.throw(StoreUnavailable("nobody answers")), Pause)
    assert seconds_of(flow.send(None)) == pytest.approx(4)
    now += 3.9
    assert isinstance(flow.throw(StoreUnavailable("nobody answers")), Pause)
    assert seconds_of(flow.send(None)) == LEAST_SECONDS
    now += 1
    with pytest.raises(StoreUnavailable):
        flow.throw(StoreUnavailable("nobody answers"))


def test_a_long_operation_is_never_cut_off() -> None:
    flow = retrying(RetryPolicy(), NOTHING, try_seconds=inf, gives_up_at=monotonic())
    assert seconds_of(next(flow)) == inf


def seconds_of(action: Action) -> float:
    assert isinstance(action, Run)
    return action.seconds

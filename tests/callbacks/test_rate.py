"""How many calls may go, on a clock that is passed in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duequeue.callbacks.rate import RateLimit

START = 1_790_000_000_000


def test_calls_are_spread_evenly() -> None:
    limit = RateLimit(4)
    went = []
    now = START
    for _ in range(5):
        now += limit.wait(now)
        limit.take(now)
        went.append(now - START)
    assert went == [0, 250, 500, 750, 1000]


def take(limit: RateLimit, now: int, calls: int) -> None:
    for _ in range(calls):
        limit.take(now)


def test_a_pause_allows_a_burst_and_no_more() -> None:
    limit = RateLimit(10, burst=3)
    assert limit.free(START) == 3
    take(limit, START, 3)
    assert (limit.free(START), limit.wait(START)) == (0, 100)
    assert limit.free(START + 100) == 1
    assert limit.free(START + 3_600_000) == 3


def test_a_high_rate_is_reached_by_looks_of_a_millisecond() -> None:
    limit = RateLimit(5_000)
    went = 0
    for now in range(START, START + 1_000):
        free = limit.free(now)
        take(limit, now, free)
        went += free
    assert 5_000 <= went <= 5_000 + 500


def test_less_than_one_call_per_second() -> None:
    limit = RateLimit(0.1)
    limit.take(START)
    assert limit.wait(START) == 10_000
    assert limit.wait(START + 9_999) == 1


def test_a_clock_that_was_set_back_does_not_stop_the_calls() -> None:
    limit = RateLimit(1)
    limit.take(START)
    assert limit.wait(START - 3_600_000) == 1_000


@given(
    st.floats(min_value=0.01, max_value=100_000),
    st.integers(min_value=1, max_value=50),
    st.lists(st.integers(min_value=0, max_value=5_000), max_size=60),
)
def test_no_span_of_time_has_too_many_calls(
    per_second: float, burst: int, pauses: list[int]
) -> None:
    limit = RateLimit(per_second, burst)
    now, went = START, []
    for pause in pauses:
        now += pause
        free = limit.free(now)
        assert (free > 0) == (limit.wait(now) == 0)
        take(limit, now, free)
        went.append((now, free))
        assert limit.free(now) == 0
        assert limit.free(now + limit.wait(now)) >= 1
    for first in range(len(went)):
        calls = sum(count for _, count in went[first:])
        seconds = (went[-1][0] - went[first][0]) / 1_000
        assert calls <= burst + per_second * seconds + 1e-6


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf")])
def test_a_rate_is_above_zero(wrong: float) -> None:
    with pytest.raises(ValueError, match="per_second must be above zero"):
        RateLimit(wrong)
    with pytest.raises(ValueError, match="burst must be at least 1"):
        RateLimit(1, burst=0)

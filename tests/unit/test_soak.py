"""The soak's verdicts: which lines count as flat, and how lateness is counted."""

from datetime import timedelta
from random import Random

from bench.soak.__main__ import report, settled_slope
from bench.soak.lateness import Lateness
from bench.soak.lines import verdict_on
from bench.soak.slope import Slope, slope_of

MINUTES = [sample / 20 for sample in range(1200)]


def noisy(rise: float) -> list[float]:
    noise = Random(3)  # noqa: S311 - no secret is drawn
    return [50 + rise * minute + noise.gauss(0, 1) for minute in MINUTES]


def test_a_line_that_rises_is_not_flat() -> None:
    slope = slope_of(MINUTES, noisy(0.1), negligible=1)
    assert not slope.is_flat
    assert abs(slope.per_minute - 0.1) < slope.uncertainty
    assert 5 < slope.change < 7


def test_noise_is_flat() -> None:
    assert slope_of(MINUTES, noisy(0), negligible=0).is_flat


def test_a_line_that_rises_too_little_to_matter_is_flat() -> None:
    exact = [50 + 0.001 * minute for minute in MINUTES]
    assert slope_of(MINUTES, exact, negligible=1).is_flat
    assert not slope_of(MINUTES, exact, negligible=0.01).is_flat


def test_lateness_is_counted_to_a_quarter() -> None:
    lateness = Lateness()
    for milliseconds in range(1, 101):
        lateness.add(timedelta(milliseconds=milliseconds))
    messages, usual, rare = lateness.take()
    assert messages == 100
    assert 50 <= usual <= 62.5
    assert 99 <= rare <= 123.75
    assert lateness.take() == (0, 0.0, 0.0)


def steep(per_minute: float) -> Slope:
    return slope_of(MINUTES, noisy(per_minute), negligible=1)


def test_only_growth_counts_and_of_the_messages_handled_a_fall() -> None:
    assert verdict_on("p99 ms", steep(0.1)) == "RISES"
    assert verdict_on("p99 ms", steep(-0.1)) == "falls"
    assert verdict_on("handled", steep(0.1)) == "rises"
    assert verdict_on("handled", steep(-0.1)) == "FALLS"
    assert verdict_on("memory MB", steep(0)) == "flat"


def test_the_soak_fails_only_for_a_change_for_the_worse() -> None:
    assert report({("SQLite", "p99 ms"): steep(-0.1), ("SQLite", "handled"): steep(0.1)}) == 0
    assert report({("SQLite", "p99 ms"): steep(-0.1), ("SQLite", "threads"): steep(0.1)}) == 1


def test_a_table_that_fills_up_at_the_beginning_is_flat() -> None:
    filling = [{"minute": minute, "table MB": min(minute, 25)} for minute in MINUTES]
    assert settled_slope(filling, "table MB").is_flat
    growing = [{"minute": minute, "table MB": minute} for minute in MINUTES]
    assert not settled_slope(growing, "table MB").is_flat

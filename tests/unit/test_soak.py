"""The soak's verdicts: which lines count as flat, and how lateness is counted."""

from datetime import timedelta
from random import Random

from bench.soak.lateness import Lateness
from bench.soak.slope import slope_of

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

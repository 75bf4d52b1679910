"""What the plots of a report show."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from matplotlib.figure import Figure

from duequeue.pipeline.reporting.plots import lateness

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def row(queue: str, at: datetime) -> dict[str, Any]:
    late = dict.fromkeys(("late_p50", "late_p90", "late_p99", "late_max"), 7)
    return {"queue": queue, "at": at, **late}


@pytest.mark.parametrize("days", [0, 5])
def test_lateness_of_every_queue_is_within_the_plot(
    monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    """A queue with a single point neither stands alone amid years nor hides the others' days."""
    figures: list[Figure] = []

    def draw(_name: str, _height: float, draw: Callable[[Figure], None]) -> str:
        figures.append(Figure())
        draw(figures[0])
        return ""

    monkeypatch.setattr("duequeue.pipeline.reporting.plots.drawn", draw)
    last = NOON + timedelta(days=days)
    lateness(
        [row("orders", NOON), row("orders", last), row("once", NOON)], ["orders", "once"], HOUR
    )
    for axes in figures[0].axes:
        shown = [EPOCH + timedelta(days=each) for each in axes.get_xlim()]
        assert shown == [NOON - HOUR / 2, last + HOUR]

"""A report as one HTML file that loads nothing from elsewhere."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, Template
from markupsafe import Markup

from duequeue.pipeline.reporting import plots, words
from duequeue.pipeline.reporting.frames import AHEAD_HOURS, HOUR, start_of
from duequeue.pipeline.reporting.steps import STEPS
from duequeue.pipeline.reporting.tables import Tables

MOST_LISTED = 30
MOST_REASONS = 10


class Period(NamedTuple):
    """The time that a report covers, and the step of its plots."""

    since: datetime
    now: datetime
    step: timedelta


def page(tables: Tables, names: Sequence[str], period: Period, sources: Sequence[str]) -> str:
    """Return the HTML of the page."""
    (total,) = tables.total.to_pylist()
    queues = sorted(tables.by_queue.to_pylist(), key=lambda row: (-row["settled"], row["queue"]))
    times, forecast = tables.by_queue_and_time.to_pylist(), tables.forecast.to_pylist()
    expected = words.expectations(forecast)
    return _template().render(
        period=period,
        step=STEPS[period.step],
        sources=sources,
        names=names,
        headline=words.headline(total, queues),
        figures=words.figures(total, expected),
        reasons=words.reasons(tables.burial_reasons.to_pylist())[:MOST_REASONS],
        outlook=words.outlook(expected, times, period.step),
        queues=queues[:MOST_LISTED],
        more_queues=max(0, len(queues) - MOST_LISTED),
        plots=_plots(tables, [row["queue"] for row in queues], period),
    )


def _plots(tables: Tables, queues: Sequence[str], period: Period) -> dict[str, Markup]:
    """Draw every plot that has data."""
    times, forecast = tables.by_queue_and_time.to_pylist(), tables.forecast.to_pylist()
    attempts = tables.by_queue_and_attempts.to_pylist()
    late = {row["queue"] for row in times if row["late_max"] is not None}
    drawn: dict[str, str] = {}
    if times:
        drawn["throughput"] = plots.throughput(times, period.step)
    if late:
        panels = [queue for queue in queues if queue in late]
        drawn["lateness"] = plots.lateness(times, panels, period.step)
    if any(row["redeliveries"] or row["buried"] for row in times):
        drawn["trouble"] = plots.trouble(times, period.step)
    if any(row["attempts"] > 1 for row in attempts):
        drawn["attempts"] = plots.attempts(attempts)
    if forecast:
        first = start_of(period.now, HOUR)
        hours = [first + number * HOUR for number in range(AHEAD_HOURS + 1)]  # the first has begun
        drawn["ahead"] = plots.ahead(forecast, hours)
    return {name: Markup(svg) for name, svg in drawn.items()}  # noqa: S704 - drawn by us, names escaped


def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("duequeue.pipeline.reporting", "."), autoescape=True, trim_blocks=True
    )
    environment.filters |= {
        "span": words.span,
        "number": words.number,
        "instant": words.instant,
    }
    return environment.get_template("report.html")

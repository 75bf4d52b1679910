"""The steps of time into which a report divides its plots."""

from datetime import timedelta

STEPS = {
    timedelta(days=1): "day",
    timedelta(hours=1): "hour",
    timedelta(minutes=1): "minute",
    timedelta(seconds=1): "second",
}
# A plot is about a thousand pixels wide, so more bars than this could not be told apart.
MOST_STEPS = 400


def fitting_step(span: timedelta) -> timedelta:
    """Return the finest step that divides a span of time into bars that one can see."""
    fitting = [step for step in STEPS if span / step <= MOST_STEPS]
    return min(fitting, default=max(STEPS))

"""The step of a report fits the time over which its messages were settled."""

from datetime import timedelta

import pytest

from duequeue.pipeline.reporting.steps import STEPS, fitting_step


@pytest.mark.parametrize(
    ("span", "step"),
    [
        (timedelta(0), "second"),
        (timedelta(minutes=6), "second"),
        (timedelta(minutes=7), "minute"),
        (timedelta(hours=6), "minute"),
        (timedelta(hours=7), "hour"),
        (timedelta(days=7), "hour"),
        (timedelta(days=30), "day"),
        (timedelta(days=4000), "day"),
    ],
)
def test_the_finest_step_that_one_can_see(span: timedelta, step: str) -> None:
    assert STEPS[fitting_step(span)] == step

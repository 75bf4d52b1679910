"""How long a waiting consumer waits."""

import pytest

from duequeue.wakeups.next_look import LONGEST_PAUSE, pause_before_next_look

NOW = 1_000_000


@pytest.mark.parametrize(
    ("next_look", "time_left", "pause"),
    [
        (NOW + 3000, None, 3.0),
        (NOW + 1, None, 0.001),
        (NOW, None, 0.0),
        (NOW - 5000, None, 0.0),
        (NOW + 3000, 1500.0, 1.5),
        (NOW + 3000, 9000.0, 3.0),
        (NOW - 5000, 1500.0, 0.0),
        (NOW + 3000, 0.0, None),
        (NOW + 3000, -1.0, None),
        (NOW - 5000, 0.0, None),
        (2**63 - 1, None, LONGEST_PAUSE),
        (NOW + 3000, float("inf"), 3.0),
    ],
)
def test_pause(next_look: int, time_left: float | None, pause: float | None) -> None:
    assert pause_before_next_look(NOW, next_look, time_left) == pause

"""The lookout: who looks next, and when."""

import pytest

from duequeue.wakeups.lookout import NEVER, Lookout, Turn

INTERVAL = 3000
NOW = 1_000_000


@pytest.fixture
def lookout() -> Lookout:
    """One that somebody has just looked for."""
    lookout = Lookout()
    assert lookout.take_turn(NOW, INTERVAL) is Turn.REGULAR
    return lookout


def test_each_look_is_taken_by_one(lookout: Lookout) -> None:
    assert lookout.next_look == NOW + INTERVAL
    assert lookout.take_turn(NOW, INTERVAL) is None
    assert lookout.take_turn(NOW + INTERVAL - 1, INTERVAL) is None
    assert lookout.take_turn(NOW + INTERVAL, INTERVAL) is Turn.REGULAR
    assert lookout.take_turn(NOW + INTERVAL, INTERVAL) is None
    assert lookout.next_look == NOW + 2 * INTERVAL


def test_a_message_brings_the_look_forward(lookout: Lookout) -> None:
    lookout.expect(NOW + 500)
    lookout.expect(NOW + 700)
    assert lookout.next_look == NOW + 500
    assert lookout.take_turn(NOW + 499, INTERVAL) is None
    assert lookout.take_turn(NOW + 500, INTERVAL) is Turn.EXPECTED
    assert lookout.take_turn(NOW + 700, INTERVAL) is None
    assert lookout.take_turn(NOW + 500 + INTERVAL, INTERVAL) is Turn.REGULAR


def test_a_message_after_the_next_look_changes_nothing(lookout: Lookout) -> None:
    lookout.expect(NOW + INTERVAL + 1)
    lookout.expect(NEVER)
    assert lookout.next_look == NOW + INTERVAL
    assert lookout.take_turn(NOW + INTERVAL, INTERVAL) is Turn.REGULAR


@pytest.mark.parametrize("due_at", [NOW, NOW - INTERVAL, -NEVER])
def test_a_message_that_is_due_is_looked_for_at_once_by_one(lookout: Lookout, due_at: int) -> None:
    lookout.expect(due_at)
    assert lookout.take_turn(NOW, INTERVAL) is Turn.EXPECTED
    assert lookout.take_turn(NOW, INTERVAL) is None


def test_what_is_expected_during_a_look_is_not_forgotten(lookout: Lookout) -> None:
    assert lookout.take_turn(NOW + INTERVAL, INTERVAL) is Turn.REGULAR
    lookout.expect(NOW + INTERVAL)  # stored after the look has read
    lookout.expect(NEVER)  # what that look saw
    assert lookout.take_turn(NOW + INTERVAL, INTERVAL) is Turn.EXPECTED


@pytest.mark.parametrize("back", [1, INTERVAL, 100 * INTERVAL])
def test_a_clock_that_is_set_back_does_not_put_the_look_off(lookout: Lookout, back: int) -> None:
    now = NOW - back
    assert lookout.take_turn(now, INTERVAL) is Turn.REGULAR
    assert lookout.next_look == now + INTERVAL


def test_who_looks_more_often_does_not_wait_for_the_others(lookout: Lookout) -> None:
    assert lookout.take_turn(NOW, INTERVAL // 10) is Turn.REGULAR
    assert lookout.next_look == NOW + INTERVAL // 10

"""The next_look: who looks next, and when."""

import pytest

from duequeue.wakeups.next_look import NEVER, NextLook, Turn

INTERVAL = 3000
NOW = 1_000_000


@pytest.fixture
def next_look() -> NextLook:
    """One that somebody has just looked for."""
    next_look = NextLook()
    assert next_look.take_turn(NOW, INTERVAL) is Turn.REGULAR
    return next_look


def test_each_look_is_taken_by_one(next_look: NextLook) -> None:
    assert next_look.at == NOW + INTERVAL
    assert next_look.take_turn(NOW, INTERVAL) is None
    assert next_look.take_turn(NOW + INTERVAL - 1, INTERVAL) is None
    assert next_look.take_turn(NOW + INTERVAL, INTERVAL) is Turn.REGULAR
    assert next_look.take_turn(NOW + INTERVAL, INTERVAL) is None
    assert next_look.at == NOW + 2 * INTERVAL


def test_a_message_brings_the_look_forward(next_look: NextLook) -> None:
    next_look.expect(NOW + 500)
    next_look.expect(NOW + 700)
    assert next_look.at == NOW + 500
    assert next_look.take_turn(NOW + 499, INTERVAL) is None
    assert next_look.take_turn(NOW + 500, INTERVAL) is Turn.EXPECTED
    assert next_look.take_turn(NOW + 700, INTERVAL) is None
    assert next_look.take_turn(NOW + 500 + INTERVAL, INTERVAL) is Turn.REGULAR


def test_a_message_after_the_next_look_changes_nothing(next_look: NextLook) -> None:
    next_look.expect(NOW + INTERVAL + 1)
    next_look.expect(NEVER)
    assert next_look.at == NOW + INTERVAL
    assert next_look.take_turn(NOW + INTERVAL, INTERVAL) is Turn.REGULAR


@pytest.mark.parametrize("due_at", [NOW, NOW - INTERVAL, -NEVER])
def test_a_message_that_is_due_is_looked_for_at_once_by_one(
    next_look: NextLook, due_at: int
) -> None:
    next_look.expect(due_at)
    assert next_look.take_turn(NOW, INTERVAL) is Turn.EXPECTED
    assert next_look.take_turn(NOW, INTERVAL) is None


def test_what_is_expected_during_a_look_is_not_forgotten(next_look: NextLook) -> None:
    assert next_look.take_turn(NOW + INTERVAL, INTERVAL) is Turn.REGULAR
    next_look.expect(NOW + INTERVAL)  # stored after the look has read
    next_look.expect(NEVER)  # what that look saw
    assert next_look.take_turn(NOW + INTERVAL, INTERVAL) is Turn.EXPECTED


@pytest.mark.parametrize("back", [1, INTERVAL, 100 * INTERVAL])
def test_a_clock_that_is_set_back_does_not_put_the_look_off(next_look: NextLook, back: int) -> None:
    now = NOW - back
    assert next_look.take_turn(now, INTERVAL) is Turn.REGULAR
    assert next_look.at == now + INTERVAL


def test_who_looks_more_often_does_not_wait_for_the_others(next_look: NextLook) -> None:
    assert next_look.take_turn(NOW, INTERVAL // 10) is Turn.REGULAR
    assert next_look.at == NOW + INTERVAL // 10

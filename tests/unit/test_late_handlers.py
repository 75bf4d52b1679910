"""Which handlers are late, and how many threads take their places."""

import pytest

from duequeue.consumer import late_handlers
from duequeue.consumer.late_handlers import LateHandlers


class Time:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(late_handlers, "monotonic", time)
    return time


def test_handlers_are_late_once_their_time_is_up(time: Time) -> None:
    late = LateHandlers(10, threads=2)
    assert late.seconds_left() == 10, "one may begin at once"
    late.begin(1)
    time.now += 4
    late.begin(2)
    assert (late.take_overdue(), late.seconds_left()) == ([], 6)
    time.now += 6
    assert late.seconds_left() == 0
    assert (late.take_overdue(), late.take_overdue()) == ([1], [])
    assert (late.is_late(1), late.is_late(2), late.seconds_left()) == (True, False, 4)


def test_a_thread_goes_on_unless_it_was_replaced(time: Time) -> None:
    late = LateHandlers(10, threads=1)
    for handler in (1, 2):
        late.begin(handler)
    assert late.end(2), "it was in time"
    time.now += 10
    late.take_overdue()
    assert late.replace(1)
    assert not late.end(1)


def test_no_more_threads_are_replaced_than_there_are(time: Time) -> None:
    late = LateHandlers(10, threads=2)
    for handler in range(4):
        late.begin(handler)
    time.now += 10
    assert [late.replace(handler) for handler in late.take_overdue()] == [True, True, False, False]
    assert late.stalled, "the two that were started hang too"
    assert late.end(2), "so it goes on with the next message"
    assert not late.stalled
    assert late.end(0), "so it takes the place of the last one"
    assert not late.end(1), "no place is left to take"
    assert not late.end(3), "its own place is taken"


def test_a_handler_that_has_ended_is_not_replaced(time: Time) -> None:
    late = LateHandlers(10, threads=1)
    late.begin(1)
    time.now += 10
    assert late.take_overdue() == [1]
    assert late.end(1)
    assert not late.replace(1)


def test_after_a_stop_no_handler_becomes_late_and_late_ones_stay_late(time: Time) -> None:
    late = LateHandlers(10, threads=1)
    late.begin(1)
    time.now += 10
    assert late.take_overdue() == [1]
    late.begin(2)
    late.stop_measuring()
    time.now += 10
    assert late.take_overdue() == []
    assert late.is_late(1)
    assert not late.is_late(2)

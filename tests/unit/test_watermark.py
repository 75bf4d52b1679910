"""The watermark: claims go on where the last one ended, and overlook nothing for long."""

import pytest

from duequeue.port.listing import Position
from duequeue.stores.sql.watermark import BEGINNING, Claim, Start, Watermark

SWEEP = 3000
LEASE_END = 10**9


@pytest.fixture
def mark() -> Watermark:
    """A mark that was swept at 0."""
    mark = Watermark()
    assert mark.start(0, SWEEP).position == BEGINNING
    return mark


def claimed(mark: Watermark, last: Position, *, now: int = 1, token: int = 1) -> None:
    """Claim two rows up to there."""
    mark.claimed(mark.start(now, SWEEP), last, Claim(token, 2, LEASE_END))


def position(mark: Watermark, now: int = 1) -> Position:
    return mark.start(now, SWEEP).position


def test_a_claim_raises_the_mark(mark: Watermark) -> None:
    claimed(mark, Position(1, 7))
    assert position(mark) == Position(1, 7)
    claimed(mark, Position(1, 9))
    assert position(mark) == Position(1, 9)


def test_a_slower_claim_does_not_lower_it(mark: Watermark) -> None:
    slow, fast = mark.start(1, SWEEP), mark.start(1, SWEEP)
    mark.claimed(fast, Position(1, 9), Claim(1, 1, LEASE_END))
    mark.claimed(slow, Position(1, 5), Claim(2, 1, LEASE_END))
    assert position(mark) == Position(1, 9)


def test_an_earlier_message_lowers_it(mark: Watermark) -> None:
    claimed(mark, Position(100, 7), now=100)
    mark.lower(50)
    assert position(mark, 100) == Position(50, 0)


def test_a_later_message_does_not(mark: Watermark) -> None:
    claimed(mark, Position(100, 7), now=100)
    mark.lower(101)
    assert position(mark, 100) == Position(100, 7)


def test_a_message_for_the_same_instant_is_seen(mark: Watermark) -> None:
    claimed(mark, Position(100, 7), now=100)
    mark.lower(100)
    assert position(mark, 100) < Position(100, 6)


def test_a_queue_that_is_opened_looks_from_the_beginning(mark: Watermark) -> None:
    claimed(mark, Position(100, 7), now=100)
    mark.start_over()
    assert position(mark, 100) == BEGINNING


def test_a_claim_under_way_does_not_pass_over_a_new_message(mark: Watermark) -> None:
    start = mark.start(100, SWEEP)
    mark.lower(50)
    mark.claimed(start, Position(100, 7), Claim(1, 1, LEASE_END))
    assert position(mark, 100) <= Position(50, 0)


def test_it_is_forgotten_once_per_interval(mark: Watermark) -> None:
    claimed(mark, Position(1, 7))
    assert position(mark, SWEEP - 1) == Position(1, 7)
    assert position(mark, SWEEP) == BEGINNING
    claimed(mark, Position(1, 7), now=SWEEP)
    assert position(mark, 2 * SWEEP - 1) == Position(1, 7)


def test_it_is_forgotten_when_a_clock_was_set_back(mark: Watermark) -> None:
    claimed(mark, Position(1, 7))
    assert position(mark, -1) == BEGINNING


def test_it_is_forgotten_when_a_claim_finds_nothing(mark: Watermark) -> None:
    claimed(mark, Position(1, 7))
    assert mark.sweep(2).position == BEGINNING
    assert position(mark, 2) == BEGINNING


def test_it_is_forgotten_when_a_lease_runs_out(mark: Watermark) -> None:
    mark.claimed(mark.start(1, SWEEP), Position(1, 7), Claim(1, 2, 500))
    assert position(mark, 499) == Position(1, 7)
    assert position(mark, 500) == BEGINNING


def test_settled_leases_do_not_run_out(mark: Watermark) -> None:
    mark.claimed(mark.start(1, SWEEP), Position(1, 7), Claim(1, 2, 500))
    mark.settled([1])
    mark.settled([1])
    assert position(mark, 500) == Position(1, 7)


def test_one_lease_of_a_claim_is_enough_to_look_again(mark: Watermark) -> None:
    mark.claimed(mark.start(1, SWEEP), Position(1, 7), Claim(1, 2, 500))
    mark.settled([1])
    assert position(mark, 500) == BEGINNING


def test_a_shortened_lease_runs_out_earlier(mark: Watermark) -> None:
    mark.claimed(mark.start(1, SWEEP), Position(1, 7), Claim(1, 1, 2000))
    mark.extended([1], 500)
    assert position(mark, 500) == BEGINNING


def test_marks_have_versions(mark: Watermark) -> None:
    before = mark.start(1, SWEEP)
    mark.lower(1)
    after = mark.start(1, SWEEP)
    assert isinstance(after, Start)
    assert after.version > before.version


def test_leases_of_a_forgotten_claim_may_be_extended_one_by_one(mark: Watermark) -> None:
    mark.claimed(mark.start(1, SWEEP), Position(1, 7), Claim(1, 2, 500))
    assert position(mark, 500) == BEGINNING
    mark.extended([1], 600)
    mark.extended([1], 700)
    mark.settled([1])
    claimed(mark, Position(1, 9), now=501, token=2)
    assert position(mark, 599) == Position(1, 9)
    assert position(mark, 700) == BEGINNING


def test_it_is_forgotten_until_a_clock_that_was_set_back_has_passed_the_same_end(
    mark: Watermark,
) -> None:
    mark.claimed(mark.start(1, SWEEP), Position(1, 7), Claim(1, 2, 500))
    assert position(mark, 500) == BEGINNING
    for now in (400, 499, 500):
        claimed(mark, Position(1, 9), now=now, token=now)
        assert position(mark, now) == (Position(1, 9) if now == 500 else BEGINNING)

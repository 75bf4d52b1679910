"""When an endpoint is kept from calls, on a clock that is passed in."""

from hypothesis import given
from hypothesis import strategies as st

from duequeue.callbacks.breaker import Breaker

START = 1_790_000_000_000
SECOND = 1_000
MINUTE = 60_000


def call(breaker: Breaker, now: int, *, fails: bool) -> None:
    """Make a call that ends at once."""
    permit = breaker.begin(now)
    assert permit is not None
    if fails:
        breaker.failed(permit, now, "answered 500")
    else:
        breaker.succeeded(permit, now)


def state_of(breaker: Breaker) -> str:
    """Return the state as a plain text, which type checkers do not narrow."""
    return breaker.state


def opened(now: int = START) -> Breaker:
    """A breaker that has just opened."""
    breaker = Breaker(now)
    for _ in range(10):
        call(breaker, now, fails=True)
    return breaker


def test_nine_failures_do_not_open_it_and_ten_do() -> None:
    breaker = Breaker(START)
    for _ in range(9):
        call(breaker, START + SECOND, fails=True)
    assert (breaker.state, breaker.since, breaker.reason) == ("active", START, "")
    call(breaker, START + SECOND, fails=True)
    assert (breaker.state, breaker.since) == ("open", START + SECOND)
    assert breaker.reason == "10 of the last 10 calls failed, the last one: answered 500"
    assert breaker.begin(START + SECOND) is None
    assert breaker.wait(START + SECOND) == 30 * SECOND


def test_three_successes_in_ten_still_let_it_open_but_not_four() -> None:
    for successes, state in ((3, "open"), (4, "active")):
        breaker = Breaker(START)
        for number in range(10):
            call(breaker, START, fails=number >= successes)
        assert state_of(breaker) == state


def test_old_failures_do_not_count() -> None:
    breaker = Breaker(START)
    for _ in range(9):
        call(breaker, START, fails=True)
    call(breaker, START + 5 * MINUTE, fails=True)
    assert state_of(breaker) == "active"


def test_one_probe_goes_after_the_pause_and_its_success_closes_it() -> None:
    breaker = opened()
    later = START + 30 * SECOND
    assert breaker.begin(later - 1) is None
    probe = breaker.begin(later)
    assert probe is not None
    assert (breaker.state, breaker.since) == ("probing", later)
    assert breaker.begin(later + SECOND) is None
    breaker.succeeded(probe, later + 2 * SECOND)
    assert (breaker.state, breaker.reason) == ("active", "")
    assert breaker.since == later + 2 * SECOND
    assert breaker.wait(later + 2 * SECOND) == 0


def test_each_failed_probe_doubles_the_pause_up_to_ten_minutes() -> None:
    breaker = opened()
    now, pauses = START, []
    for _ in range(7):
        pauses.append(breaker.wait(now) // SECOND)
        now += breaker.wait(now)
        call(breaker, now, fails=True)
        assert (breaker.state, breaker.reason) == ("open", "answered 500")
    assert pauses == [30, 60, 120, 240, 480, 600, 600]
    now += breaker.wait(now)
    call(breaker, now, fails=False)
    for _ in range(10):
        call(breaker, now, fails=True)
    assert breaker.wait(now) == 30 * SECOND


def test_calls_from_before_it_opened_say_nothing_about_the_probe() -> None:
    breaker = Breaker(START)
    slow = [breaker.begin(START) for _ in range(3)]
    for _ in range(10):
        call(breaker, START, fails=True)
    probe = breaker.begin(START + 30 * SECOND)
    assert probe is not None
    assert slow[0] is not None
    breaker.succeeded(slow[0], START + 31 * SECOND)
    assert state_of(breaker) == "probing"
    breaker.failed(slow[0], START + 31 * SECOND, "answered 500")
    assert state_of(breaker) == "probing"
    breaker.succeeded(probe, START + 32 * SECOND)
    assert state_of(breaker) == "active"


def test_a_cancelled_probe_makes_room_for_another() -> None:
    breaker = opened()
    later = START + 30 * SECOND
    probe = breaker.begin(later)
    assert probe is not None
    breaker.gave_up(probe)
    assert breaker.wait(later) == 0
    call(breaker, later, fails=False)
    assert state_of(breaker) == "active"


def test_a_probe_that_never_reports_does_not_block_for_ever() -> None:
    breaker = opened()
    later = START + 30 * SECOND
    slow = breaker.begin(later)
    assert slow is not None
    assert breaker.wait(later) == 30 * SECOND
    assert breaker.begin(later + 30 * SECOND) is not None
    breaker.succeeded(slow, later + 40 * SECOND)
    assert state_of(breaker) == "active"


def test_a_clock_that_was_set_back_does_not_lengthen_the_pause() -> None:
    assert opened().wait(START - 60 * MINUTE) == 30 * SECOND


@given(st.lists(st.tuples(st.integers(min_value=0, max_value=20_000), st.booleans())))
def test_it_opens_exactly_by_its_rule(calls: list[tuple[int, bool]]) -> None:
    breaker, now, seen = Breaker(START), START, list[tuple[int, bool]]()
    for pause, fails in calls:
        now += pause
        call(breaker, now, fails=fails)
        seen.append((now // (30 * SECOND), fails))
        recent = [fails for slice_, fails in seen if slice_ > now // (30 * SECOND) - 10]
        by_rule = fails and len(recent) >= 10 and sum(recent) >= 0.7 * len(recent)
        assert (breaker.state == "open") == by_rule
        if by_rule:
            return

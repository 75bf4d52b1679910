"""Every timer does what a sorted list would do, wherever a random walk leads."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from duequeue.timers import (
    Handle,
    HashedWheel,
    HeapTimer,
    HierarchicalWheel,
    SimpleWheel,
    SortedHashedWheel,
    Timer,
)
from tests.timers.containers import containers_of

DAY = 86_400_000
MakeTimer = Callable[[], Timer[Any]]

# Small wheels turn often, and large ticks hold several instants.
TIMERS: dict[str, MakeTimer] = {
    "heap": HeapTimer,
    "simple": SimpleWheel,
    "simple, small ticks": partial(SimpleWheel, slots=2**20, tick=64),
    "sorted": SortedHashedWheel,
    "sorted, 5 slots": partial(SortedHashedWheel, slots=5, tick=3),
    "sorted, 1 slot": partial(SortedHashedWheel, slots=1, tick=1),
    "hashed": HashedWheel,
    "hashed, 5 slots": partial(HashedWheel, slots=5, tick=3),
    "hashed, 1 slot": partial(HashedWheel, slots=1, tick=1),
    "hierarchical": HierarchicalWheel,
}


@pytest.fixture(params=TIMERS)
def timer(request: pytest.FixtureRequest) -> Timer[Any]:
    return TIMERS[request.param]()


class SortedList:
    """What a timer must do, done in the plainest way."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, Any]] = []

    def add(self, at: int, number: int) -> None:
        self.rows = sorted([*self.rows, (at, number, f"item {number}")])

    def remove(self, number: int) -> bool:
        before = len(self.rows)
        self.rows = [row for row in self.rows if row[1] != number]
        return len(self.rows) < before

    def take(self, now: int) -> list[Any]:
        due = [row for row in self.rows if row[0] <= now]
        self.rows = self.rows[len(due) :]
        return [item for _, _, item in due]


# Instants that collide, that lie around the digits of a hierarchy, and that lie far apart.
near = st.integers(-20, 150)
digits = st.builds(
    lambda exponent, offset: 64**exponent + offset, st.integers(1, 4), st.integers(-2, 2)
)
far = st.integers(-20_000_000, 40_000_000)
instants = st.one_of(near, near, digits, far)


class Walk(RuleBasedStateMachine):
    """One timer beside a sorted list; the clock jumps in both directions."""

    make: MakeTimer = HeapTimer

    def __init__(self) -> None:
        super().__init__()
        self.timer = type(self).make()
        self.expected = SortedList()
        self.handles: list[Handle] = []

    @rule(at=instants)
    def schedule(self, at: int) -> None:
        number = len(self.handles)
        self.handles.append(self.timer.schedule(at, f"item {number}"))
        self.expected.add(at, number)

    @precondition(lambda self: self.handles)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, len(self.handles) - 1))
        assert self.timer.cancel(self.handles[number]) is self.expected.remove(number)
        assert not self.timer.cancel(self.handles[number])

    @rule(now=instants)
    def advance(self, now: int) -> None:
        assert self.timer.advance(now) == self.expected.take(now)

    @rule(now=instants)
    def look_and_take_one(self, now: int) -> None:
        found = self.timer.first(now)
        if found is None:
            assert all(at > now for at, _, _ in self.expected.rows)
        else:
            handle, item = found
            at, number, expected = self.expected.rows[0]
            assert (at <= now, item) == (True, expected)
            assert handle == self.handles[number]
            assert self.timer.cancel(handle) is self.expected.remove(number) is True

    @rule()
    def look_ahead(self) -> None:
        rows = self.expected.rows
        assert self.timer.next_due() == (rows[0][0] if rows else None)

    @invariant()
    def has_as_many(self) -> None:
        assert len(self.timer) == len(self.expected.rows)


@pytest.mark.parametrize("name", TIMERS)
def test_a_timer_is_a_sorted_list(name: str) -> None:
    walk = type("Walk", (Walk,), {"make": staticmethod(TIMERS[name])})
    run_state_machine_as_test(walk, settings=settings(max_examples=150, stateful_step_count=30))


def test_ties_come_in_insertion_order(timer: Timer[str]) -> None:
    for at, item in [(5, "c"), (3, "a"), (5, "d"), (3, "b"), (5, "e")]:
        timer.schedule(at, item)
    assert timer.advance(4) == ["a", "b"]
    assert timer.advance(5) == ["c", "d", "e"]


def test_ties_come_by_rank_if_they_have_one(timer: Timer[str]) -> None:
    for rank in (3, 1, 2):
        timer.schedule(7, f"rank {rank}", rank)
    assert timer.advance(7) == ["rank 1", "rank 2", "rank 3"]


def test_the_next_item_is_found_when_the_first_is_cancelled(timer: Timer[str]) -> None:
    first = timer.schedule(9, "first")
    timer.schedule(27, "third")  # on a small wheel, the hand comes to its slot before the next one
    timer.schedule(18, "second")
    assert timer.cancel(first)
    assert timer.next_due() == 18
    assert timer.advance(27) == ["second", "third"]


def test_an_item_that_comes_back_has_its_handle_again(timer: Timer[str]) -> None:
    handle = timer.schedule(7, "a", 1)
    assert timer.cancel(handle)
    assert timer.schedule(7, "b", 1) == handle
    assert timer.advance(7) == ["b"]
    assert not timer.cancel(handle)
    assert (len(timer), timer.next_due()) == (0, None)


def test_nothing_comes_before_its_millisecond(timer: Timer[int]) -> None:
    beginning = 1_800_000_000_000
    timer.advance(beginning)
    for at in range(1000, 0, -1):
        timer.schedule(beginning + at, at)
    assert [timer.advance(beginning + now) for now in range(1, 1001)] == [
        [now] for now in range(1, 1001)
    ]


def test_a_clock_set_back_holds_items_back(timer: Timer[str]) -> None:
    timer.advance(DAY)
    timer.schedule(DAY // 2, "noon")
    assert timer.advance(1000) == []
    assert timer.next_due() == DAY // 2
    assert timer.advance(DAY // 2) == ["noon"]


def test_a_clock_that_jumps_ahead_takes_everything_along(timer: Timer[int]) -> None:
    timer.advance(0)
    for at in range(0, 36_000_000, 999_983):
        timer.schedule(at, at)
    assert timer.advance(10 * 365 * DAY) == list(range(0, 36_000_000, 999_983))
    timer.schedule(10 * 365 * DAY + 1, 1)
    assert timer.advance(10 * 365 * DAY + 1) == [1]


def test_none_is_an_item_like_any_other(timer: Timer[None]) -> None:
    handle = timer.schedule(1, None)
    timer.schedule(1, None)
    assert timer.cancel(handle)
    assert timer.advance(1) == [None]


def test_a_cancelled_item_is_let_go(timer: Timer[object]) -> None:
    """Timeouts are mostly cancelled long before they are due, so they must not pile up."""
    timer.advance(0)
    kept = timer.schedule(36_000_000, "kept")
    for _ in range(1000):
        timer.cancel(timer.schedule(30_000_000, "cancelled"))
    assert len(timer) == 1
    assert sum(len(each) for each in containers_of(timer)) < 200
    assert timer.cancel(kept)


@pytest.mark.parametrize("at", [1.5, "1", None])
def test_an_instant_is_an_int(timer: Timer[str], at: Any) -> None:
    with pytest.raises(TypeError, match="at must be whole milliseconds"):
        timer.schedule(at, "a")
    assert len(timer) == 0


@pytest.mark.parametrize("handle", [None, "a", 1.5, -1, 0])
def test_nothing_is_under_another_handle(timer: Timer[str], handle: Any) -> None:
    timer.schedule(10_000, "a")
    assert not timer.cancel(handle)
    assert timer.advance(10_000) == ["a"]


@pytest.mark.parametrize("now", [20_000.5, "1", None])
def test_a_bad_now_loses_nothing(timer: Timer[str], now: Any) -> None:
    timer.schedule(0, "a")
    timer.schedule(10_000, "b")
    for call in (timer.advance, timer.first):
        with pytest.raises(TypeError, match="now must be whole milliseconds, as an int"):
            call(now)
    timer.schedule(10_001, "c")
    assert timer.advance(20_000) == ["a", "b", "c"]


def test_a_simple_wheel_refuses_what_lies_beyond_its_span() -> None:
    wheel: SimpleWheel[str] = SimpleWheel(slots=8, tick=10)
    wheel.advance(25)
    wheel.schedule(109, "last")
    with pytest.raises(ValueError, match=r"at must be at most 109, because .* 8 slots of 10 ms"):
        wheel.schedule(110, "too late")
    assert len(wheel) == 1
    assert wheel.advance(30) == []
    wheel.schedule(110, "in time now")
    assert wheel.advance(10**9) == ["last", "in time now"]


@pytest.mark.parametrize("make", [SimpleWheel, SortedHashedWheel, HashedWheel])
@pytest.mark.parametrize("option", ["slots", "tick"])
@pytest.mark.parametrize("number", [0, -1, 1.5, True])
def test_a_wheel_needs_slots_and_ticks(
    make: Callable[..., Timer[Any]], option: str, number: Any
) -> None:
    with pytest.raises(ValueError, match=f"{option} must be a whole number above 0"):
        make(**{option: number})

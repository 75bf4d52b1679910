"""The ferry: who goes at once, who goes along, and that nobody is left on the bank."""

from duequeue.ferry import MOST_PASSENGERS, PATIENCE, Ferry, Passenger
from duequeue.message import OfferOutcome
from duequeue.store import Record

CREATED, IGNORED = OfferOutcome.CREATED, OfferOutcome.IGNORED


def wait(ferry: Ferry, *keys: str) -> list[Passenger]:
    return [ferry.wait(Record(key, b"", 0)) for key in keys]


def test_whoever_comes_alone_goes_at_once() -> None:
    ferry = Ferry()
    (alone,) = wait(ferry, "a")
    assert ferry.cast_off(0.0) == [alone]


def test_those_who_come_meanwhile_go_together() -> None:
    ferry = Ferry()
    wait(ferry, "a")
    first = ferry.cast_off(0.0)
    late = wait(ferry, "b", "c", "d")
    assert ferry.cast_off(PATIENCE / 2) == []
    ferry.land(first, [CREATED])
    assert ferry.cast_off(PATIENCE / 2) == late


def test_everybody_is_told_an_outcome() -> None:
    ferry = Ferry()
    aboard = wait(ferry, "a", "b")
    heard = [passenger.bell.rings for passenger in aboard]
    ferry.land(ferry.cast_off(0.0), [CREATED, IGNORED])
    assert [passenger.outcome for passenger in aboard] == [CREATED, IGNORED]
    assert not any(passenger.waits for passenger in aboard)
    assert all(one.bell.rings > before for one, before in zip(aboard, heard, strict=True))


def test_a_crossing_that_failed_leaves_everybody_to_himself() -> None:
    ferry = Ferry()
    aboard = wait(ferry, "a", "b")
    ferry.land(ferry.cast_off(0.0), [])
    assert [(one.outcome, one.stranded) for one in aboard] == [(None, True)] * 2


def test_landing_calls_the_first_of_those_who_wait() -> None:
    ferry = Ferry()
    wait(ferry, "a")
    aboard = ferry.cast_off(0.0)
    first, second = wait(ferry, "b", "c")
    ferry.land(aboard, [CREATED])
    assert (first.bell.rings, second.bell.rings) == (1, 0)


def test_who_was_called_and_left_passes_the_call_on() -> None:
    ferry = Ferry()
    wait(ferry, "a")
    aboard = ferry.cast_off(0.0)
    first, second = wait(ferry, "b", "c")
    ferry.land(aboard, [CREATED])
    ferry.leave(first)
    assert second.bell.rings == 1
    assert ferry.cast_off(0.0) == [second]


def test_nobody_waits_for_long_for_a_ferry_that_stays_away() -> None:
    ferry = Ferry()
    wait(ferry, "a")
    stuck = ferry.cast_off(0.0)
    (late,) = wait(ferry, "b")
    beside = ferry.cast_off(PATIENCE)
    assert beside == [late]
    wait(ferry, "c")
    ferry.land(stuck, [CREATED])  # comes back while the other one is away
    assert ferry.cast_off(PATIENCE) == []
    ferry.land(beside, [CREATED])
    assert len(ferry.cast_off(PATIENCE)) == 1


def test_the_ferry_has_so_many_places() -> None:
    ferry = Ferry()
    wait(ferry, *map(str, range(MOST_PASSENGERS + 1)))
    first = ferry.cast_off(0.0)
    assert len(first) == MOST_PASSENGERS
    ferry.land(first, [CREATED] * MOST_PASSENGERS)
    assert len(ferry.cast_off(0.0)) == 1

"""The ferry: who goes at once, who goes along, and that nobody is left on the bank."""

from duequeue.flows.group_commit import MOST_FOLLOWERS, PATIENCE, Ferry, Passenger
from duequeue.message import OfferOutcome
from duequeue.port.store import Record

CREATED, IGNORED = OfferOutcome.CREATED, OfferOutcome.IGNORED


def wait(ferry: Ferry, *keys: str) -> list[Passenger]:
    return [ferry.wait(Record(key, b"", 0)) for key in keys]


def test_whoever_comes_alone_goes_at_once() -> None:
    ferry = Ferry()
    (alone,) = wait(ferry, "a")
    assert ferry.cast_off(alone, 0.0) == [alone]


def test_those_who_come_meanwhile_go_together() -> None:
    ferry = Ferry()
    (leader,) = wait(ferry, "a")
    first = ferry.cast_off(leader, 0.0)
    late = wait(ferry, "b", "c", "d")
    assert ferry.cast_off(late[0], PATIENCE / 2) == []
    ferry.land(first, [CREATED])
    assert ferry.cast_off(late[0], PATIENCE / 2) == late


def test_whoever_is_under_way_leads_nobody() -> None:
    ferry = Ferry()
    leader, taken = wait(ferry, "a", "b")
    ferry.cast_off(leader, 0.0)
    wait(ferry, "c")
    assert ferry.cast_off(taken, PATIENCE) == []


def test_everybody_is_told_an_outcome() -> None:
    ferry = Ferry()
    aboard = wait(ferry, "a", "b")
    heard = [passenger.bell.rings for passenger in aboard]
    ferry.land(ferry.cast_off(aboard[0], 0.0), [CREATED, IGNORED])
    assert [passenger.outcome for passenger in aboard] == [CREATED, IGNORED]
    assert not any(passenger.waits for passenger in aboard)
    assert all(one.bell.rings > before for one, before in zip(aboard, heard, strict=True))


def test_a_crossing_that_failed_leaves_everybody_to_himself() -> None:
    ferry = Ferry()
    aboard = wait(ferry, "a", "b")
    ferry.land(ferry.cast_off(aboard[0], 0.0), [])
    assert [(one.outcome, one.stranded) for one in aboard] == [(None, True)] * 2


def test_a_leader_who_leaves_strands_those_it_took() -> None:
    ferry = Ferry()
    leader, taken = wait(ferry, "a", "b")
    ferry.cast_off(leader, 0.0)
    ferry.leave(leader)
    assert taken.stranded
    assert taken.bell.rings == 1
    (late,) = wait(ferry, "c")
    assert ferry.cast_off(late, 0.0) == [late]


def test_a_leader_who_leaves_after_landing_takes_nothing_back() -> None:
    ferry = Ferry()
    leader, taken = wait(ferry, "a", "b")
    ferry.land(ferry.cast_off(leader, 0.0), [CREATED, CREATED])
    ferry.leave(leader)
    assert (taken.outcome, taken.stranded) == (CREATED, False)


def test_landing_calls_the_first_of_those_who_wait() -> None:
    ferry = Ferry()
    (leader,) = wait(ferry, "a")
    aboard = ferry.cast_off(leader, 0.0)
    first, second = wait(ferry, "b", "c")
    ferry.land(aboard, [CREATED])
    assert (first.bell.rings, second.bell.rings) == (1, 0)


def test_who_was_called_and_left_passes_the_call_on() -> None:
    ferry = Ferry()
    (leader,) = wait(ferry, "a")
    aboard = ferry.cast_off(leader, 0.0)
    first, second = wait(ferry, "b", "c")
    ferry.land(aboard, [CREATED])
    ferry.leave(first)
    assert second.bell.rings == 1
    assert ferry.cast_off(second, 0.0) == [second]


def test_nobody_waits_for_long_for_a_ferry_that_stays_away() -> None:
    ferry = Ferry()
    (leader,) = wait(ferry, "a")
    stuck = ferry.cast_off(leader, 0.0)
    (late,) = wait(ferry, "b")
    beside = ferry.cast_off(late, PATIENCE)
    assert beside == [late]
    (third,) = wait(ferry, "c")
    ferry.land(stuck, [CREATED])  # comes back while the other one is away
    assert ferry.cast_off(third, PATIENCE) == []
    ferry.land(beside, [CREATED])
    assert ferry.cast_off(third, PATIENCE) == [third]


def test_the_ferry_has_so_many_places_and_the_leader_has_one() -> None:
    ferry = Ferry()
    *_, last = wait(ferry, *map(str, range(MOST_FOLLOWERS + 2)))
    first = ferry.cast_off(last, 0.0)
    assert len(first) == MOST_FOLLOWERS + 1
    assert last in first

"""What an installation changes, as values."""

from collections.abc import Sequence
from typing import Any

import pytest

from duequeue.port.cron_rules import Decision, Holding, UndeliveredTick, decide
from duequeue.port.cron_table import CronRow, Installation, Standing, Tick
from duequeue.port.store import Record

RUNNING = CronRow("one", "daily", 3, installed=True, created_until=20)


def tick(at: int, payload: bytes = b"new") -> Tick:
    return Tick(at, f"reports/one/{at}", payload, at + 1)


def record(at: int, payload: bytes = b"new", *, replace: bool = True) -> Record:
    return Record(f"reports/one/{at}", payload, at + 1, None, replace)


def waiting(at: int, config_hash: str = "one") -> UndeliveredTick:
    return UndeliveredTick(config_hash, at, f"reports/{config_hash}/{at}")


def wish(*ats: int, **wishes: Any) -> Installation:
    return Installation("reports", "one", "daily", [tick(at) for at in ats], **wishes)


def offered(decision: Decision) -> list[int]:
    return [record.due_at - 1 for record in decision.offered]


def test_a_first_installation() -> None:
    decision = decide(wish(10, 20, created_until=20), Holding(CronRow()))
    row = CronRow("one", "daily", 1, installed=True, created_until=20)
    assert decision == Decision(
        Standing.RUNNING, [], [record(10), record(20)], [tick(10), tick(20)], row
    )


def test_another_configuration_gives_way() -> None:
    row = CronRow("two", "hourly", 3, installed=True, created_until=90)
    held = [waiting(10, "two"), waiting(20)]
    decision = decide(wish(30, created_until=30), Holding(row, held))
    assert decision.removed == [waiting(10, "two")]
    assert decision.row == CronRow("one", "daily", 4, installed=True, created_until=30)


@pytest.mark.parametrize("takes_over", [True, False])
def test_a_tick_that_somebody_was_given_is_left_alone(*, takes_over: bool) -> None:
    holding = Holding(RUNNING, [waiting(20)], {10, 20})
    decision = decide(wish(10, 20, 30, takes_over=takes_over), holding)
    assert offered(decision) == ([20, 30] if takes_over else [30])
    assert decision.noted == [tick(30)]
    assert all(each.replace == takes_over for each in decision.offered)


def test_a_tick_of_a_forgotten_time_is_not_created() -> None:
    holding = Holding(RUNNING, [waiting(10)], {10}, forgotten_until=15)
    assert offered(decide(wish(5, 10, 15, 16), holding)) == [10, 16]


@pytest.mark.parametrize(
    ("row", "made_up_for"),
    [
        (RUNNING, [21, 22]),
        (RUNNING._replace(created_until=21), [22]),
        (RUNNING._replace(created_until=None), []),
        (RUNNING._replace(config_hash="two"), []),
        (CronRow(), []),
    ],
)
def test_missed_ticks_are_those_after_what_the_same_configuration_created(
    row: CronRow, made_up_for: Sequence[int]
) -> None:
    decision = decide(wish(30, missed=[tick(20), tick(21), tick(22)]), Holding(row))
    assert offered(decision) == [*made_up_for, 30]


@pytest.mark.parametrize(("given", "kept"), [(None, 20), (19, 20), (21, 21)])
def test_created_until_never_goes_back(given: int | None, kept: int) -> None:
    decision = decide(wish(created_until=given), Holding(RUNNING))
    assert decision.row is not None
    assert decision.row.created_until == kept


@pytest.mark.parametrize(("takes_over", "counts"), [(True, b"second"), (False, b"first")])
def test_a_tick_given_twice_is_one_tick(*, takes_over: bool, counts: bytes) -> None:
    twice = Installation(
        "reports", "one", "", [tick(30, b"first"), tick(30, b"second")], takes_over=takes_over
    )
    decision = decide(twice, Holding(RUNNING))
    assert decision.offered == [record(30, counts, replace=takes_over)]
    assert decision.noted == [tick(30, counts)]


PAUSED = RUNNING._replace(paused=True)


def test_a_paused_prefix_gets_no_ticks_but_the_new_configuration() -> None:
    row = PAUSED._replace(config_hash="two", schedule="hourly")
    decision = decide(wish(30, created_until=30), Holding(row, [waiting(10, "two")]))
    taken_over = CronRow("one", "daily", 4, installed=True, paused=True)
    assert decision == Decision(Standing.PAUSED, [waiting(10, "two")], row=taken_over)


@pytest.mark.parametrize(
    ("row", "standing"),
    [
        (PAUSED, Standing.PAUSED),
        (RUNNING._replace(config_hash="two"), Standing.REPLACED),
        (RUNNING._replace(installed=False), Standing.UNINSTALLED),
    ],
)
def test_without_taking_over_nothing_is_changed_for_others(
    row: CronRow, standing: Standing
) -> None:
    holding = Holding(row, [waiting(10, "two")])
    decision = decide(wish(30, created_until=30, takes_over=False), holding)
    assert decision == Decision(standing, [])

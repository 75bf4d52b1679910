"""What each call costs on PostgreSQL: a change that makes one dearer must say so here."""

from collections.abc import Iterator
from functools import partial
from statistics import median_high
from typing import Any

import pytest

from duequeue import ManualClock, Queue
from duequeue.contract.phrases import DEFAULT_POLL_INTERVAL
from duequeue.contract.stage import until
from tests.costs.calls import (
    CHUNK,
    Calls,
    acks,
    acks_of_many,
    batches,
    extensions,
    fill,
    offers,
    polls,
    polls_in_vain,
    polls_of_many,
    releases,
    repeated_offers,
)
from tests.costs.meter import Cost, cost_of, reporting
from tests.sql.wire import Wire


@pytest.fixture
def wire(postgres_url: str) -> Iterator[Wire]:
    with Wire(postgres_url) as wire:
        yield wire


@pytest.fixture
def queue(wire: Wire, clock: ManualClock) -> Iterator[Queue[Any]]:
    # With a single connection, nothing but the call itself is on the wire.
    with Queue.open(f"{reporting(wire.url)}&pool_size=1", "orders", clock=clock) as queue:
        yield queue


# Statements, round trips, transactions, log records, log bytes, pages, rows. Of a claim,
# each row is looked at twice: to lock it, and to change it. So is that of an extension, which does
# not wait for a row that somebody else has locked. Each row of many acks is looked up by itself, in
# the order of keys. A new row makes five log records: itself, its confirmation as not in conflict,
# and three index entries. A poll takes one look at the index of responses, which is empty here.
LIMITS: dict[Calls, Cost] = {
    offers: Cost(1, 1, 1, 5, 510, 12, 0),
    repeated_offers: Cost(1, 1, 1, 1, 60, 5, 0),
    batches: Cost(1, 1, 1, 506, 53_000, 1150, 0),
    polls: Cost(1, 1, 1, 3, 230, 11, 2),
    polls_of_many: Cost(1, 1, 1, 203, 16_500, 330, 200),
    polls_in_vain: Cost(1, 1, 1, 0, 0, 6, 0),
    acks: Cost(1, 1, 1, 1, 60, 6, 1),
    acks_of_many: Cost(1, 1, 1, 108, 6_500, 510, 100),
    extensions: Cost(1, 1, 1, 3, 210, 9, 2),
    releases: Cost(1, 1, 1, 5, 400, 14, 1),
}


@pytest.mark.parametrize(
    ("calls", "limit"), LIMITS.items(), ids=[calls.__name__ for calls in LIMITS]
)
def test_a_call_costs_no_more_than(
    wire: Wire,
    queue: Queue[Any],
    clock: ManualClock,
    calls: Calls,
    limit: Cost,
) -> None:
    fill(queue, clock)
    # Once in a while a page is split, pruned or logged whole; the usual lap has none of that.
    laps = [cost_of(wire.traffic_of(call)) for call in calls(queue)]
    usual = Cost(*map(median_high, zip(*laps, strict=True)))
    assert usual[:3] == limit[:3]
    assert not [
        (name, spent, allowed)
        for name, spent, allowed in zip(Cost._fields, usual, limit, strict=True)
        if spent > allowed
    ]


def test_what_is_leased_is_not_walked_over_again(
    wire: Wire, queue: Queue[Any], clock: ManualClock
) -> None:
    fill(queue, clock)
    laps = [cost_of(wire.traffic_of(call)) for call in polls_of_many(queue)]
    assert {cost.rows for cost in laps} == {2 * CHUNK}


def has_sent_more(wire: Wire, than: int) -> bool:
    return wire.statements > than


def test_the_look_of_an_idle_consumer_is_one_read(
    wire: Wire, queue: Queue[Any], clock: ManualClock
) -> None:
    looks = 20

    def stay_idle() -> None:
        for _ in range(looks):
            sent = wire.statements
            clock.advance(DEFAULT_POLL_INTERVAL)
            until(partial(has_sent_more, wire, sent))

    opened = wire.statements
    with queue.consume(lambda _: None):
        # Its first look, the line to other processes, and the look that follows on it.
        until(lambda: wire.statements == opened + 4)
        cost = cost_of(wire.traffic_of(stay_idle))
    assert cost.statements == looks
    assert cost.log_records == 0
    assert cost.pages <= 5 * looks
    assert cost.rows == 0

"""What each call costs on MariaDB: a change that makes one dearer must say so here."""

from collections.abc import Iterator
from statistics import median_high
from typing import Any

import pytest

from duequeue import ManualClock, Queue
from tests.costs.calls import (
    CHUNK,
    Calls,
    acks,
    acks_of_many,
    batches,
    batches_of_501,
    extensions,
    fill,
    large_batches,
    offers,
    polls,
    polls_in_vain,
    polls_of_many,
    releases,
    repeated_offers,
)
from tests.costs.mariadb_meter import Cost, MariadbMeter


@pytest.fixture
def meter(mariadb_url: str) -> Iterator[MariadbMeter]:
    with MariadbMeter(mariadb_url) as meter:
        yield meter


@pytest.fixture
def queue(meter: MariadbMeter, clock: ManualClock) -> Iterator[Queue[Any]]:
    # With a single connection, nothing but the call itself is on the wire.
    with Queue.open(f"{meter.url}&pool_size=1", "orders", clock=clock) as queue:
        yield queue


# Round trips, statements, transactions, rows read, rows written. BEGIN and COMMIT are statements
# that travel with the others. A claim and an extension find and lock rows in a first round trip,
# and change them by their ids in a second one. An ack of many and a release do both at once, so
# every row is looked at twice; an ack of one only deletes. A large batch of new messages is
# committed in a second round trip, once the server has counted them. A poll in vain only looks,
# without locks, as every claim from the beginning does first. A claim also looks for an old
# response to each message, which counts as two reads.
LIMITS: dict[Calls, Cost] = {
    offers: Cost(1, 1, 1, 0, 1),
    repeated_offers: Cost(1, 1, 1, 1, 1),
    batches: Cost(1, 1, 1, 0, 100),
    large_batches: Cost(2, 4, 1, 0, 1000),
    batches_of_501: Cost(2, 4, 1, 0, 501),
    polls: Cost(2, 4, 1, 4, 1),
    polls_of_many: Cost(2, 4, 1, 400, 100),
    polls_in_vain: Cost(1, 1, 1, 1, 0),
    acks: Cost(1, 1, 1, 1, 1),
    acks_of_many: Cost(1, 4, 1, 200, 100),
    extensions: Cost(2, 4, 1, 2, 1),
    releases: Cost(1, 4, 1, 2, 1),
}


@pytest.mark.parametrize(
    ("calls", "limit"), LIMITS.items(), ids=[calls.__name__ for calls in LIMITS]
)
def test_a_call_costs_no_more_than(
    meter: MariadbMeter,
    queue: Queue[Any],
    clock: ManualClock,
    calls: Calls,
    limit: Cost,
) -> None:
    fill(queue, clock)
    # The first lap may change how long the connection waits for locks.
    laps = [meter.cost_of(call) for call in calls(queue)]
    usual = Cost(*map(median_high, zip(*laps, strict=True)))
    assert usual[:3] == limit[:3]
    assert not [
        (name, spent, allowed)
        for name, spent, allowed in zip(Cost._fields, usual, limit, strict=True)
        if spent > allowed
    ]


def test_a_claim_reads_only_what_it_takes(
    meter: MariadbMeter, queue: Queue[Any], clock: ManualClock
) -> None:
    fill(queue, clock)
    first, *others = [meter.cost_of(call).rows_read for call in polls_of_many(queue)]
    assert first <= 5 * CHUNK  # the watermark is not known yet
    assert set(others) == {4 * CHUNK}

"""A page costs reads in proportion to its length, whatever the statistics say."""

from collections.abc import Callable, Iterator
from operator import methodcaller
from typing import Any

import psycopg
import pytest

from duequeue import ManualClock, Page, Queue
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import DAY, HOUR
from tests.fixtures.postgres import PostgresServer
from tests.sql.explaining import STATISTICS, Explaining

ROWS = 100_000
DUE = "duequeue_message_due"
KEY = "duequeue_message_key"
FIRST = int(START.timestamp() * 1000)
# One key in a thousand has another prefix.
FILL = """
    INSERT INTO duequeue_message (due_at, asked_at, created_at, kind_id, key, payload)
    SELECT
        %(first)s + number * 1000, %(first)s + number * 1000, 0, kind.id,
        CASE WHEN number %% 1000 = 0 THEN 'rare-' ELSE 'order-' END || number, '\\x31'
    FROM duequeue_kind AS kind, generate_series(1, %(rows)s) AS number
"""


@pytest.fixture(scope="module")
def filled_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database with many messages of two queues, of which the second has the same keys."""
    url = postgres_server.create_database()
    for name in ("orders", "invoices"):
        Queue.open(url, name).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER TABLE duequeue_message SET (autovacuum_enabled = off)")
        connection.execute(FILL, {"first": FIRST, "rows": ROWS})
        connection.execute("VACUUM (PARALLEL 0) duequeue_message")
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(params=STATISTICS)
def explaining(
    request: pytest.FixtureRequest, filled_url: str, clock: ManualClock
) -> Iterator[Explaining]:
    clock.advance(HOUR)  # 3600 messages are due
    with (
        Queue.open(filled_url, "orders", clock=clock) as queue,
        psycopg.connect(filled_url, autocommit=True) as connection,
    ):
        connection.execute(STATISTICS[request.param])
        yield Explaining(queue, connection)


FILTERS: dict[str, dict[str, Any]] = {
    "all": {},
    "due": {"state": "due"},
    "future": {"state": "future"},
    "from": {"due_from": START + 20 * HOUR},
    "between": {"due_from": START + 20 * HOUR, "due_to": START + DAY, "state": "future"},
}


@pytest.mark.parametrize("filters", FILTERS.values(), ids=FILTERS)
def test_a_page_reads_what_it_returns(explaining: Explaining, filters: dict[str, Any]) -> None:
    cursor = None
    for _ in range(7):  # by then the statement is prepared
        list_page: Callable[..., Page[Any]] = methodcaller("list", **filters, after=cursor)
        page, (plan,) = explaining.plans_of(list_page)
        assert len(page.messages) == 100
        assert plan.indexes == {DUE}, str(plan)
        assert not plan.kinds & {"Seq Scan", "Sort", "Incremental Sort"}, str(plan)
        assert plan.buffers <= 150, str(plan)
        cursor = page.next


def test_few_keys_with_a_prefix_are_looked_up_by_key(explaining: Explaining) -> None:
    for _ in range(7):
        page, (count, plan) = explaining.plans_of(lambda queue: queue.list(prefix="rare-"))
        assert len(page.messages) == 100
        for each in (count, plan):
            assert each.indexes <= {KEY, "duequeue_message_pkey"}, str(each)
            assert "Seq Scan" not in each.kinds, str(each)
            assert each.buffers <= 1000, str(each)


def test_many_keys_with_a_prefix_are_met_in_due_order(explaining: Explaining) -> None:
    for _ in range(7):
        page, (count, plan) = explaining.plans_of(lambda queue: queue.list(prefix="order-"))
        assert len(page.messages) == 100
        assert count.buffers <= 250, str(count)
        assert plan.indexes == {DUE}, str(plan)
        assert plan.buffers <= 150, str(plan)


def test_a_forecast_reads_the_index_of_due_times(explaining: Explaining) -> None:
    for _ in range(7):
        hours, (plan,) = explaining.plans_of(lambda queue: queue.forecast(until=3 * HOUR))
        assert [hour.messages for hour in hours] == [7199, 3600, 3600]
        assert hours[0].overdue == 3600
        assert plan.indexes == {DUE}, str(plan)
        assert "Seq Scan" not in plan.kinds, str(plan)
        assert plan.buffers <= 500, str(plan)


def test_a_key_is_rescheduled_by_key(explaining: Explaining) -> None:
    for _ in range(7):
        found, (plan, *_) = explaining.plans_of(lambda queue: queue.reschedule("order-1", START))
        assert found
        assert KEY in plan.indexes, str(plan)
        assert plan.buffers <= 60, str(plan)

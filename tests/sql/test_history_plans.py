"""Reading the history goes by index, however many days and queues there are."""

from collections.abc import Iterator
from operator import methodcaller

import psycopg
import pytest

from duequeue import ManualClock, Queue
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import DAY
from duequeue.stores.sql.postgres.statements import queries
from tests.fixtures.postgres import PostgresServer
from tests.sql.explaining import Explaining, Plan

DAYS = 60
ROWS_A_DAY = 2000
FIRST_DAY = int(START.timestamp() * 1000) // 86_400_000 * 86_400_000

FILL = """
    SELECT duequeue_add_history_day(day)
    FROM generate_series(%(first)s::bigint, %(last)s::bigint, 86400000) AS day;
"""
# Of the queue under test there is one row a day, somewhere in between.
ROWS = """
    INSERT INTO duequeue_history (kind_id, key, asked_at, settled_at, attempts, outcome)
    SELECT CASE WHEN number = 700 THEN 1 ELSE 2 END, number, 0, day + number, 1, 'acked'
    FROM generate_series(%(first)s::bigint, %(last)s::bigint, 86400000) AS day,
        generate_series(1, %(rows)s) AS number
"""


@pytest.fixture(scope="module")
def filled_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database with the history of two queues, one of them busy."""
    url = postgres_server.create_database()
    Queue.open(url, "orders").close()
    Queue.open(url, "invoices").close()
    last = FIRST_DAY + (DAYS - 1) * 86_400_000
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(FILL, {"first": FIRST_DAY, "last": last})
        connection.execute(ROWS, {"first": FIRST_DAY, "last": last, "rows": ROWS_A_DAY})
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(params=["no statistics", "fresh statistics"])
def explaining(
    request: pytest.FixtureRequest, filled_url: str, clock: ManualClock
) -> Iterator[Explaining]:
    with (
        Queue.open(filled_url, "orders", clock=clock) as queue,
        psycopg.connect(filled_url, autocommit=True) as connection,
    ):
        if request.param == "fresh statistics":
            connection.execute("ANALYZE duequeue_history")
        yield Explaining(queue, connection)


def assert_goes_by_index(plan: Plan) -> None:
    read = [node for node in plan.nodes if node.get("Actual Loops")]
    assert not {node["Node Type"] for node in read} & {"Seq Scan", "Sort"}, str(plan)


def test_the_newest_are_found_at_the_end_of_the_last_days(explaining: Explaining) -> None:
    for _ in range(7):
        found, (plan,) = explaining.plans_of(methodcaller("history", 5))
        assert [one.settled_at.date() for one in found] == [
            (START + (DAYS - 1 - ago) * DAY).date() for ago in range(5)
        ]
        assert_goes_by_index(plan)
        assert plan.buffers <= 5 * 10, str(plan)


def test_the_rows_of_a_key_are_met_on_the_way_back(explaining: Explaining) -> None:
    for _ in range(7):
        found, (plan,) = explaining.plans_of(methodcaller("history", 5, "700"))
        assert [one.settled_at.date() for one in found] == [
            (START + (DAYS - 1 - ago) * DAY).date() for ago in range(5)
        ]
        assert_goes_by_index(plan)
        assert plan.buffers <= 5 * 10, str(plan)


def test_days_are_found_in_jumps(explaining: Explaining) -> None:
    plan = explained(explaining, "list_history_days", {})
    assert plan.buffers <= 2 * DAYS * 30, str(plan)


def test_a_range_of_a_day_reads_that_range(explaining: Explaining) -> None:
    day = FIRST_DAY + 30 * 86_400_000
    first = 30 * ROWS_A_DAY
    of = {"day": day, "after_id": first + 500, "until_id": first + 1500, "limit": 100}
    plan = explained(explaining, "read_history_day", of)
    assert_goes_by_index(plan)
    assert plan.buffers <= 250, str(plan)


def test_a_day_is_counted_in_its_own_pages(explaining: Explaining) -> None:
    plan = explained(explaining, "bound_history_day", {"day": FIRST_DAY})
    assert plan.buffers <= ROWS_A_DAY / 50, str(plan)


def explained(explaining: Explaining, name: str, parameters: dict[str, int]) -> Plan:
    """Run a query of the catalogue, and return its plan."""
    _, (plan,) = explaining.plans_of(
        lambda _: explaining.connection.execute(queries()[name], parameters).fetchall()
    )
    return plan

"""A million messages that are not due yet cost a consumer nothing, whatever the statistics say."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from operator import methodcaller
from typing import Any

import psycopg
import pytest

from duequeue import Delivery, ManualClock, Message, Queue
from duequeue.bulk.port import PAGE_BYTES, BatchId, Reach, StreamBatch
from duequeue.bulk.sql import SqlBulk
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import DAY, MINUTE
from duequeue.instants import to_millis
from duequeue.stores.sql.settling import Settling
from duequeue.stores.sql.store import Kind
from tests.fixtures.postgres import PostgresServer
from tests.sql.explaining import STATISTICS, Explaining, Plan

DUE = "duequeue_message_due"
PRIMARY_KEY = "duequeue_message_pkey"
KEY = "duequeue_message_key"
RESPONSE_KEY = "duequeue_response_pkey"

A_MILLION_FUTURE_MESSAGES = """
    INSERT INTO duequeue_message (due_at, asked_at, created_at, kind_id, key, payload)
    SELECT due_at, due_at, 0, kind.id, 'future-' || due_at, '\\x31'
    FROM duequeue_kind AS kind, generate_series(%(after)s + 1, %(after)s + 1000000) AS due_at
"""


@pytest.fixture(scope="module")
def million_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database with a million messages that are due in a year."""
    url = postgres_server.create_database()
    Queue.open(url, "orders").close()
    after = int((START + 365 * DAY).timestamp() * 1000)
    with psycopg.connect(url, autocommit=True) as connection:
        # The statistics are to be what each test says.
        connection.execute("ALTER TABLE duequeue_message SET (autovacuum_enabled = off)")
        connection.execute(A_MILLION_FUTURE_MESSAGES, {"after": after})
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(params=[False, True], ids=["without history", "with history"])
def history(request: pytest.FixtureRequest) -> bool:
    """Whether what is settled leaves a row, whose own pages are few."""
    return bool(request.param)


@pytest.fixture(params=STATISTICS)
def explaining(
    request: pytest.FixtureRequest, million_url: str, clock: ManualClock, history: bool
) -> Iterator[Explaining]:
    """The queue of the million, with each kind of statistics in turn."""
    with (
        Queue.open(million_url, "orders", clock=clock, history=history) as queue,
        psycopg.connect(million_url, autocommit=True) as connection,
    ):
        connection.execute("DELETE FROM duequeue_message WHERE payload != '\\x31'")
        connection.execute("DELETE FROM duequeue_response")
        for table in ("duequeue_message", "duequeue_response"):
            connection.execute(f"VACUUM (INDEX_CLEANUP ON, PARALLEL 0) {table}")
        connection.execute(STATISTICS[request.param])
        yield Explaining(queue, connection)


def assert_walks(plan: Plan, index: str) -> None:
    """It goes down an index, and does not read the table through."""
    assert index in plan.indexes, str(plan)
    assert not plan.kinds & {"Seq Scan", "Hash Join", "Merge Join"}, str(plan)


def assert_walks_in_order(plan: Plan) -> None:
    """It goes down the index in due order, so that nothing has to be sorted."""
    assert_walks(plan, DUE)
    assert not plan.kinds & {"Sort", "Incremental Sort"}, str(plan)


def test_a_look_in_vain_reads_a_handful_of_pages(explaining: Explaining) -> None:
    for _ in range(7):  # by then the statements are prepared
        found, (claim, next_due) = explaining.plans_of(methodcaller("poll_many", 100, timedelta(0)))
        assert found == []
        for plan in (claim, next_due):
            assert_walks_in_order(plan)
            assert plan.buffers <= 10, str(plan)


def test_what_is_prepared_on_an_empty_table_goes_by_index(
    ready_database: str, clock: ManualClock
) -> None:
    with (
        Queue.open(ready_database, "orders", clock=clock) as queue,
        psycopg.connect(ready_database, autocommit=True) as connection,
    ):
        connection.execute("TRUNCATE duequeue_message")  # so that it has not a single page
        explaining = Explaining(queue, connection)
        for number in range(7):
            queue.offer(f"order-{number}", "due")
            held, (claim,) = explaining.plans_of(methodcaller("try_poll_many", 1))
            assert_walks_in_order(claim)
            assert_walks(claim, PRIMARY_KEY)
            _, (removal,) = explaining.plans_of(methodcaller("ack_many", held))
            assert_walks(removal, PRIMARY_KEY)


def test_a_claim_reads_what_it_claims(explaining: Explaining) -> None:
    explaining.queue.offer_batch([Message(f"order-{number}", "x" * 150) for number in range(1000)])
    for _ in range(7):
        found, (plan,) = explaining.plans_of(methodcaller("try_poll_many", 100))
        assert len(found) == 100
        assert_walks_in_order(plan)
        assert_walks(plan, PRIMARY_KEY)
        assert plan.buffers <= 15 * 100, str(plan)


def test_the_limit_binds(explaining: Explaining) -> None:
    explaining.queue.offer_batch([Message(f"order-{number}", "due") for number in range(10_000)])
    leased = "SELECT count(*) FROM duequeue_message WHERE attempt > 0"
    for claimed in range(5, 40, 5):
        found, _ = explaining.plans_of(methodcaller("try_poll_many", 5))
        assert len(found) == 5
        assert explaining.connection.execute(leased).fetchone() == (claimed,)


def answer_one(queue: Queue[Any]) -> bool:
    return claim(queue).ack(response="done")


def ack_some(queue: Queue[Any]) -> int:
    return queue.ack_many(queue.try_poll_many(100))


def extend_one(queue: Queue[Any]) -> bool:
    return claim(queue).extend()


def release_one(queue: Queue[Any]) -> bool:
    return claim(queue).release(MINUTE)


def bury_one(queue: Queue[Any]) -> bool:
    return claim(queue).bury("enough")


def claim(queue: Queue[Any]) -> Delivery[Any]:
    delivery = queue.try_poll()
    assert delivery is not None
    return delivery


@pytest.mark.parametrize("settle", [ack_some, answer_one, extend_one, release_one, bury_one])
def test_settling_goes_by_primary_key(
    explaining: Explaining, settle: Callable[[Queue[Any]], int]
) -> None:
    explaining.queue.offer_batch([Message(f"order-{number}", "due") for number in range(1000)])
    for _ in range(7):
        won, (_, *plans) = explaining.plans_of(settle)
        assert won
        for plan in plans:
            if "duequeue_message" in plan.query:
                assert_walks(plan, PRIMARY_KEY)
                assert plan.indexes == {PRIMARY_KEY}
                assert plan.buffers <= 100 + 15 * won, str(plan)


@pytest.mark.parametrize("look", [methodcaller("read", "order-1"), methodcaller("drop", "order-1")])
def test_keys_are_found_by_key(
    explaining: Explaining, look: Callable[[Queue[Any]], object]
) -> None:
    for _ in range(7):
        explaining.queue.offer("order-1", "due")
        found, plans = explaining.plans_of(look)
        assert found
        for plan in plans:
            if "duequeue_message" in plan.query:
                assert_walks(plan, KEY)
                assert plan.buffers <= 40, str(plan)


MANY_RESPONSES = """
    INSERT INTO duequeue_response (kind_id, key, responded_at, expires_at, payload)
    SELECT kind.id, 'order-' || number, 0, %(now)s + number - 5, '\\x31'
    FROM duequeue_kind AS kind, generate_series(1, 20000) AS number
"""


def test_responses_are_found_by_key_and_by_expiry(explaining: Explaining) -> None:
    explaining.connection.execute(MANY_RESPONSES, {"now": to_millis(START)})
    explaining.queue.offer_batch([Message(f"order-{number}", "due") for number in range(1, 101)])
    store = explaining.queue._context.store  # noqa: SLF001 - no call makes it sweep each time
    for number in range(1000, 1007):
        found, (look,) = explaining.plans_of(methodcaller("response", f"order-{number}", 0))
        assert found is not None
        forgotten, (deletion,) = explaining.plans_of(
            methodcaller("forget_response", f"order-{number}")
        )
        assert forgotten
        deliveries, (claims, forgetting) = explaining.plans_of(methodcaller("try_poll_many", 10))
        assert len(deliveries) == 10
        for plan in (look, deletion, claims, forgetting):
            assert_walks(plan, RESPONSE_KEY)
        assert max(look.buffers, deletion.buffers) <= 15
        assert claims.buffers <= 25 * 10
        assert forgetting.buffers <= 10 * 10
    now = to_millis(START)
    for _ in range(7):
        _, (sweep,) = explaining.plans_of_operation(partial(store._responses.make_room, 100, now))  # type: ignore[attr-defined]  # noqa: SLF001 - likewise
        assert_walks(sweep, "duequeue_response_expiry")
        assert sweep.buffers <= 60, str(sweep)


def test_a_response_is_found_by_key_if_the_statistics_are_of_an_empty_table(
    explaining: Explaining, million_url: str
) -> None:
    """This is so if they are gathered while a large transaction is not committed yet."""
    with psycopg.connect(million_url) as other:
        other.execute(MANY_RESPONSES, {"now": to_millis(START)})
        explaining.connection.execute("ANALYZE duequeue_response")
    explaining.queue.offer_batch([Message(f"order-{number}", "due") for number in range(1, 101)])
    for number in range(1000, 1007):
        found, (look,) = explaining.plans_of(methodcaller("response", f"order-{number}", 0))
        assert found is not None
        _, (deletion,) = explaining.plans_of(methodcaller("forget_response", f"order-{number}"))
        _, (claims, forgetting) = explaining.plans_of(methodcaller("try_poll_many", 10))
        for plan in (look, deletion, claims, forgetting):
            assert_walks(plan, RESPONSE_KEY)
        assert max(look.buffers, deletion.buffers) <= 15


def test_a_micro_batch_goes_by_primary_key(explaining: Explaining) -> None:
    explaining.queue.offer_batch([Message(f"order-{number}", "due") for number in range(1000)])
    store = SqlBulk(Kind(1, "orders|json"), Settling(1, None))
    now = to_millis(START)
    for sequence in range(1, 8):  # by then the statements are prepared
        batch = BatchId("consumer", sequence)
        lease = partial(store.lease, batch, 100, 50, now, now + 60_000, Reach(now, 2**62))
        leased, (_, gather, claim, forgetting) = explaining.plans_of_operation(lease)
        assert leased == StreamBatch(sequence, 2, 100)
        assert_walks(gather, DUE)
        assert forgetting.buffers <= 10, str(forgetting)
        measure = partial(store.slice_lengths, batch, 1, PAGE_BYTES)
        lengths, (measuring,) = explaining.plans_of_operation(measure)
        assert lengths == [len('"due"')] * 50
        read = partial(store.read_slice, batch, 1, range(10, 40), with_payload=True)
        found, (look,) = explaining.plans_of_operation(read)
        assert len(found) == 30
        extend = partial(store.extend, "consumer", now + 90_000)
        extended, (_, extension, _) = explaining.plans_of_operation(extend)
        assert extended == 100
        acked, (_, removal, _) = explaining.plans_of_operation(partial(store.ack, batch, now))
        assert acked == 100
        for plan in (claim, measuring, look, extension, removal):
            assert_walks(plan, PRIMARY_KEY)
            assert plan.buffers <= 100 + 15 * 100, str(plan)

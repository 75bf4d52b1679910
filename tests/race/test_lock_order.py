"""PostgreSQL: every statement locks its rows in the order of their keys, so none can deadlock."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from random import Random
from typing import Any, TypeAlias

import psycopg
import pytest

from duequeue import ConfigHash, CronMessage, Message, Queue
from duequeue.bulk.port import BatchId, Reach
from duequeue.bulk.sql import SqlBulk
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import DAY, PATIENCE, in_background
from duequeue.contract.stage import until
from duequeue.drive.steps import drive
from duequeue.instants import to_millis
from duequeue.port.store import Burial, Lease, Record, Release, Steps
from duequeue.stores.sql.history_table import HistoryDays
from duequeue.stores.sql.postgres.adapters import register_arrays
from duequeue.stores.sql.postgres.session import perform
from duequeue.stores.sql.postgres.settings import SESSION_SETTINGS
from duequeue.stores.sql.settling import Settling
from duequeue.stores.sql.store import Kind, SqlStore
from duequeue.stores.sql.watermark import Watermark
from tests.race.together import together
from tests.race.watching import WAITING_FOR_A_LOCK, until_one

NOW = to_millis(START)
TOKEN = 7
KIND = Kind(1, "orders|json")
BATCH = BatchId("me", 1)
# Neither insertion order nor input order is the order of the keys.
CREATED = ["c", "a", "B"]

# In a nearly empty table, any index is as good as another.
OTHERS = """
    INSERT INTO duequeue_message (due_at, asked_at, created_at, kind_id, key, payload)
    SELECT 0, 0, 0, 2, 'other-' || number, '' FROM generate_series(1, 2000) AS number
"""

pytestmark = pytest.mark.parametrize("store", ["postgres"], indirect=True)

Operation: TypeAlias = Callable[[SqlStore, Settling, Sequence[Lease]], Steps[object]]


def records(keys: str, **changes: Any) -> list[Record]:
    return [Record(key, str(n).encode(), NOW, **changes) for n, key in enumerate(keys)]


def offer_with_a_key_twice(store: SqlStore, _: object, __: object) -> Steps[object]:
    return store.offer(records("ccaB"), NOW)


def offer_with_mixed_replace(store: SqlStore, _: object, __: object) -> Steps[object]:
    kept = records("a", replace=False)
    return store.offer([*records("c"), *kept, *records("B")], NOW)


def ack(store: SqlStore, _: object, leases: Sequence[Lease]) -> Steps[object]:
    return store.ack(leases, NOW)


def release(store: SqlStore, _: object, leases: Sequence[Lease]) -> Steps[object]:
    return store.release([Release(lease, NOW) for lease in leases])


def give_back(store: SqlStore, _: object, leases: Sequence[Lease]) -> Steps[object]:
    return store.give_back(leases)


def bury(store: SqlStore, _: object, leases: Sequence[Lease]) -> Steps[object]:
    return store.bury([Burial(lease, 1, "enough") for lease in leases], NOW)


def drop_all(store: SqlStore, _: object, __: object) -> Steps[object]:
    return store.drop_all(NOW)


def ack_a_micro_batch(_: object, settling: Settling, __: object) -> Steps[object]:
    return SqlBulk(KIND, settling).ack(BATCH, NOW)


OPERATIONS: list[Operation] = [
    offer_with_a_key_twice,
    offer_with_mixed_replace,
    ack,
    release,
    give_back,
    bury,
    drop_all,
    ack_a_micro_batch,
]


@pytest.fixture
def ours(store_url: str) -> Iterator[psycopg.Connection]:
    """A connection as a session makes it."""
    Queue.open(store_url, "orders").close()
    with psycopg.connect(store_url, application_name="duequeue", autocommit=True) as connection:
        connection.execute(SESSION_SETTINGS)
        connection.execute(OTHERS)
        register_arrays(connection)
        yield connection


@pytest.mark.parametrize("history", [False, True], ids=["without history", "with history"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=[each.__name__ for each in OPERATIONS])
def test_rows_are_locked_in_the_order_of_keys(
    ours: psycopg.Connection,
    store_url: str,
    watch: psycopg.Connection,
    operation: Operation,
    history: bool,
) -> None:
    settling = Settling(KIND.id, HistoryDays() if history else None)
    store = SqlStore(KIND, settling, 3000, Watermark())
    on_ours = partial(perform, ours, None, None)
    for key in CREATED:  # one by one, so that the table has them in this order too
        drive(store.offer([Record(key, b"1", NOW)], NOW), on_ours)
    if operation is ack_a_micro_batch:
        reach = Reach(NOW, 2**62)
        drive(SqlBulk(KIND, settling).lease(BATCH, 9, 9, NOW, NOW + 1, reach), on_ours)
        leases = []
    else:
        leases = [each.lease for each in drive(store.claim(9, NOW, NOW + 1, TOKEN), on_ours)]

    def run() -> None:
        with ours.transaction():
            drive(operation(store, settling, leases), on_ours)

    with psycopg.connect(store_url) as rival:
        rival.execute("SELECT 1 FROM duequeue_message WHERE key = 'B' FOR UPDATE")
        running = in_background(run)
        until_one(watch, WAITING_FOR_A_LOCK)
        # The operation waits for the first key, and holds no other.
        rival.execute("SELECT 1 FROM duequeue_message WHERE key IN ('a', 'c') FOR UPDATE NOWAIT")
        rival.rollback()
        running.result(PATIENCE)


def test_undelivered_ticks_are_locked_in_the_order_of_keys(
    store_url: str, watch: psycopg.Connection
) -> None:
    with Queue[str].open(store_url, "orders") as queue, psycopg.connect(store_url) as rival:
        for prefix in ("a", "b"):
            tick = CronMessage("hello", START + 9999 * DAY)
            queue.cron.install_tick(ConfigHash("earlier"), prefix, [tick])
        first, last = sorted(key for (key,) in rival.execute("SELECT key FROM duequeue_message"))
        # Their hashes are in another order than their keys.
        rival.execute("UPDATE duequeue_tick SET config_hash = 'later' WHERE prefix = 'a'")
        rival.execute("UPDATE duequeue_tick SET prefix = 'a' WHERE prefix = 'b'")
        rival.commit()
        rival.execute("SELECT 1 FROM duequeue_message WHERE key = %s FOR UPDATE", [first])
        pausing = in_background(partial(queue.cron.pause, "a"))
        until_one(watch, WAITING_FOR_A_LOCK)
        rival.execute("SELECT 1 FROM duequeue_message WHERE key = %s FOR UPDATE NOWAIT", [last])
        rival.rollback()
        assert pausing.result(PATIENCE)


KEYS = [f"order-{number:03}" for number in range(120)]
LAPS = 25
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
CONNECTED = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'duequeue'
"""


def offer_in_disorder(queue: Queue[Any], seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - no secret
    for lap in range(LAPS):
        keys = [*chance.sample(KEYS, 60), *chance.sample(KEYS, 20)]
        batch = zip(keys, cycle([True, False]), strict=False)
        queue.offer_batch([Message(key, lap, replace=replace) for key, replace in batch])


def settle_in_disorder(queue: Queue[Any], seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - no secret
    for lap in range(2 * LAPS):
        held = queue.try_poll_many(60)
        chance.shuffle(held)
        for delivery in held[:5]:
            delivery.bury("enough") if lap % 2 else delivery.release()
        queue.ack_many(held)
        if lap % 5 == 0:
            queue.revive_all()


def test_offers_and_acks_of_the_same_messages_never_deadlock(
    store_url: str, watch: psycopg.Connection
) -> None:
    before = watch.execute(DEADLOCKS).fetchone()  # other tests may have had some
    # A deadlock ends at once, so that there would be many of them.
    url = f"{store_url}?options=-c%20deadlock_timeout%3D10ms"
    with Queue.open(url, "orders") as queue, Queue.open(url, "orders", history=True) as other:
        together(
            *(partial(offer_in_disorder, each, seed) for seed, each in enumerate((queue, other))),
            *(partial(settle_in_disorder, each, seed) for seed, each in enumerate((queue, other))),
        )
    until(lambda: watch.execute(CONNECTED).fetchone() == (0,))  # when they end, they are counted
    assert watch.execute(DEADLOCKS).fetchone() == before

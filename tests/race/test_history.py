"""Days of the history that are made and removed while others settle: no row is lost, none twice."""

from collections import Counter
from collections.abc import Iterator
from functools import partial

import psycopg
import pytest

from duequeue import History, ManualClock, Queue
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import DAY, PATIENCE, in_background
from tests.race.crew import Crew
from tests.race.history_parts import archive_until, open_and_settle, settle_over_days
from tests.race.watching import WAITING_FOR_A_LOCK, until_one

PROCESSES = 10
ROUNDS = 25
ROWS = 2 * ROUNDS * 21

KEYS = "SELECT key FROM duequeue_history"
DAYS = "SELECT count(*) FROM pg_inherits WHERE inhparent = CAST('duequeue_history' AS regclass)"


@pytest.fixture
def admin(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def rows_of(admin: psycopg.Connection) -> Counter[str]:
    """How often each key was settled."""
    return Counter(key for (key,) in admin.execute(KEYS))


def test_ten_processes_make_the_same_days(
    postgres_url: str, crew: Crew, admin: psycopg.Connection
) -> None:
    names = [f"process-{number}" for number in range(PROCESSES)]
    settled = crew.together([partial(open_and_settle, postgres_url, name) for name in names])
    assert rows_of(admin) == Counter(key for keys in settled for key in keys)
    assert admin.execute(DAYS).fetchone() == (6,)


def test_two_processes_settle_over_the_same_days(
    postgres_url: str, crew: Crew, admin: psycopg.Connection
) -> None:
    settle = [partial(settle_over_days, postgres_url, name, ROUNDS) for name in ("one", "two")]
    settled = crew.together(settle)
    assert rows_of(admin) == Counter(key for keys in settled for key in keys)


def test_days_are_removed_while_two_processes_settle_there(
    postgres_url: str, crew: Crew, admin: psycopg.Connection
) -> None:
    Queue.open(postgres_url, "orders", history=True).close()
    settle = [partial(settle_over_days, postgres_url, name, ROUNDS) for name in ("one", "two")]
    archive = partial(archive_until, postgres_url, START + 400 * DAY, ROWS)
    one, two, archived = crew.together([*settle, archive])
    assert len(one) + len(two) == ROWS
    assert Counter(archived) == Counter([*one, *two])
    assert rows_of(admin) == Counter()


def test_days_are_removed_from_redis_while_two_processes_settle_there(
    redis_url: str, crew: Crew
) -> None:
    Queue.open(redis_url, "orders", history=True).close()
    settle = [partial(settle_over_days, redis_url, name, ROUNDS) for name in ("one", "two")]
    archive = partial(archive_until, redis_url, START + 400 * DAY, ROWS)
    one, two, archived = crew.together([*settle, archive])
    assert len(one) + len(two) == ROWS
    assert Counter(archived) == Counter([*one, *two])
    with History.open(redis_url) as history:
        assert history.days() == []


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_day_made_in_a_callers_transaction_is_waited_for(
    postgres_url: str, admin: psycopg.Connection, clock: ManualClock, end: str
) -> None:
    with (
        Queue.open(postgres_url, "orders", clock=clock, history=True) as queue,
        psycopg.connect(postgres_url) as connection,
    ):
        queue.offer("a", 1)
        queue.offer("b", 1)
        clock.advance(100 * DAY)
        assert queue.within(connection).drop("a")
        dropping = in_background(partial(queue.drop, "b"))
        until_one(admin, WAITING_FOR_A_LOCK)
        getattr(connection, end)()
        assert dropping.result(PATIENCE)
    assert rows_of(admin) == Counter("ab" if end == "commit" else "b")

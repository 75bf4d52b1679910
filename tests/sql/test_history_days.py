"""The history on PostgreSQL: one partition for each day, made in time and removed as a whole."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from threading import Timer
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from duequeue import (
    DayBounds,
    History,
    ManualClock,
    Message,
    Retention,
    RetryPolicy,
    StoreError,
    StoreUnavailable,
)
from duequeue.contract.faces import Face, QueueFace
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import DAY, HOUR, claim
from tests.fixtures.connections import connect_postgres

PARTITIONS = """
    SELECT CAST(CAST(inhrelid AS regclass) AS text) FROM pg_inherits
    WHERE inhparent = CAST('duequeue_history' AS regclass) ORDER BY 1
"""
FIRST_DAY = START.date()
# What a login needs that is not one of our roles.
RIGHTS = """
    GRANT SELECT ON duequeue_migration TO app;
    GRANT SELECT, INSERT ON duequeue_kind TO app;
    GRANT SELECT, INSERT, UPDATE, DELETE ON duequeue_message, duequeue_buried TO app;
    GRANT SELECT, INSERT, UPDATE, DELETE ON duequeue_response TO app;
    GRANT USAGE ON SEQUENCE duequeue_message_id_seq TO app;
    GRANT SELECT, INSERT ON duequeue_history TO app;
    GRANT EXECUTE ON FUNCTION duequeue_add_history_day TO app;
"""
LITTLE_PATIENCE = RetryPolicy(budget=timedelta(milliseconds=300))


@pytest.fixture
def admin(postgres_url: str) -> Iterator[psycopg.Connection]:
    """What the owner of the database sees."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def queue(postgres_url: str, face: Face, clock: ManualClock) -> Iterator[QueueFace]:
    with face.open(postgres_url, "orders", clock=clock, history=True) as queue:
        yield queue


@pytest.fixture
def history(postgres_url: str, queue: QueueFace, clock: ManualClock) -> Iterator[History]:
    with History.open(postgres_url, clock=clock, retry=LITTLE_PATIENCE) as history:
        yield history


def partitions(admin: psycopg.Connection) -> list[str]:
    """The days that there is room for."""
    return [name.removeprefix("duequeue_history_") for (name,) in admin.execute(PARTITIONS)]


def settle(queue: QueueFace, key: str) -> None:
    queue.offer(key, 1)
    assert claim(queue).ack()


def test_opening_makes_today_and_tomorrow(queue: QueueFace, admin: psycopg.Connection) -> None:
    assert partitions(admin) == ["20260301", "20260302"]


def test_opening_again_makes_nothing(
    queue: QueueFace, postgres_url: str, face: Face, clock: ManualClock, admin: psycopg.Connection
) -> None:
    clock.advance(HOUR)
    face.open(postgres_url, "invoices", clock=clock, history=True).close()
    assert partitions(admin) == ["20260301", "20260302"]


def test_without_history_no_day_is_made(
    postgres_url: str, face: Face, clock: ManualClock, admin: psycopg.Connection
) -> None:
    with face.open(postgres_url, "orders", clock=clock) as queue:
        settle(queue, "a")
        assert partitions(admin) == []
        assert queue.history() == []


def test_a_later_day_is_made_on_demand_and_the_next_one_with_it(
    queue: QueueFace, clock: ManualClock, admin: psycopg.Connection
) -> None:
    clock.advance(5 * DAY)
    settle(queue, "a")
    assert partitions(admin) == ["20260301", "20260302", "20260306", "20260307"]
    clock.advance(DAY)
    settle(queue, "b")
    assert len(partitions(admin)) == 4
    clock.advance(DAY)
    settle(queue, "c")
    assert partitions(admin)[4:] == ["20260308", "20260309"]
    assert [one.key for one in queue.history()] == ["c", "b", "a"]


SETTLEMENTS: dict[str, Callable[[QueueFace], object]] = {
    "ack": lambda queue: claim(queue).ack(),
    "ack_many": lambda queue: queue.ack_many(queue.try_poll_many(1)),
    "bury": lambda queue: claim(queue).bury("enough"),
    "drop": lambda queue: queue.drop("a"),
    "drop_all": lambda queue: queue.drop_all(queue.name),
    "replace": lambda queue: queue.offer("a", 2),
    "replace in a batch": lambda queue: queue.offer_batch([Message("b", 1), Message("a", 2)]),
}


@pytest.mark.parametrize("how", SETTLEMENTS)
def test_a_day_that_was_taken_away_is_made_again(
    queue: QueueFace, admin: psycopg.Connection, how: str
) -> None:
    queue.offer("a", 1)
    admin.execute("DROP TABLE duequeue_history_20260301")
    assert SETTLEMENTS[how](queue)
    assert [one.key for one in queue.history()] == ["a"]
    assert partitions(admin) == ["20260301", "20260302"]


def test_a_day_that_was_detached_is_not_overwritten(
    queue: QueueFace, admin: psycopg.Connection
) -> None:
    queue.offer("a", 1)
    admin.execute("ALTER TABLE duequeue_history DETACH PARTITION duequeue_history_20260301")
    delivery = queue.try_poll()
    assert delivery is not None
    with pytest.raises(StoreError, match=r'"duequeue_history_20260301" already exists'):
        delivery.ack()
    assert queue.contains("a")


def test_a_removed_day_takes_the_empty_ones_before_it_along(
    queue: QueueFace, history: History, clock: ManualClock, admin: psycopg.Connection
) -> None:
    settle(queue, "a")
    clock.advance(3 * DAY)
    settle(queue, "b")
    clock.advance(4 * DAY)
    settle(queue, "c")
    days = ["20260301", "20260302", "20260304", "20260305", "20260308", "20260309"]
    assert partitions(admin) == days
    day = FIRST_DAY + timedelta(days=3)
    assert history.remove_day(day, history.day_bounds(day))
    assert partitions(admin) == ["20260301", "20260305", "20260308", "20260309"]
    assert [one.key for one in queue.history()] == ["c", "a"]


def test_a_day_is_not_removed_while_somebody_settles_there(
    queue: QueueFace,
    history: History,
    postgres_url: str,
    face: Face,
    clock: ManualClock,
    admin: psycopg.Connection,
) -> None:
    settle(queue, "a")
    queue.offer("late", 1)
    bounds = history.day_bounds(FIRST_DAY)
    connection = connect_postgres(face, postgres_url)
    assert queue.within(connection).drop("late")
    clock.advance(DAY)
    with pytest.raises(StoreUnavailable, match="lock timeout"):
        history.remove_day(FIRST_DAY, bounds)
    settle(queue, "b")
    connection.commit()
    connection.close()
    assert not history.remove_day(FIRST_DAY, bounds)
    assert history.day_bounds(FIRST_DAY).rows == 2
    assert history.remove_day(FIRST_DAY, history.day_bounds(FIRST_DAY))
    assert partitions(admin) == ["20260302"]


def test_a_row_with_a_smaller_id_may_come_late(
    queue: QueueFace, history: History, postgres_url: str, face: Face, clock: ManualClock
) -> None:
    queue.offer_batch([Message("late", 1), Message("a", 1)])
    connection = connect_postgres(face, postgres_url)
    assert queue.within(connection).drop("late")
    assert queue.drop("a")
    bounds = history.day_bounds(FIRST_DAY)
    connection.commit()
    connection.close()
    clock.advance(DAY)
    assert history.day_bounds(FIRST_DAY) == DayBounds(bounds.first_id - 1, bounds.last_id, 2)
    assert not history.remove_day(FIRST_DAY, bounds)


def test_a_day_may_be_younger_than_a_callers_snapshot(
    queue: QueueFace,
    postgres_url: str,
    face: Face,
    clock: ManualClock,
    admin: psycopg.Connection,
) -> None:
    queue.offer("a", 1)
    connection = connect_postgres(face, postgres_url)
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    connection.execute("SELECT 1 FROM duequeue_message")
    clock.advance(10 * DAY)
    admin.execute("SELECT duequeue_add_history_day(1773187200000)")
    assert queue.within(connection).drop("a")
    connection.commit()
    connection.close()
    assert [one.key for one in queue.history()] == ["a"]
    assert partitions(admin)[2:] == ["20260311"]


@pytest.fixture
def app_url(queue: QueueFace, postgres_url: str, admin: psycopg.Connection) -> Iterator[str]:
    """The database as an application without the right to create tables sees it."""
    admin.execute("CREATE ROLE app LOGIN PASSWORD 'hunter2'")
    admin.execute(RIGHTS)
    parts = urlsplit(postgres_url)
    host = parts.netloc.rpartition("@")[2]
    yield urlunsplit(parts._replace(netloc=f"app:hunter2@{host}"))
    admin.execute("DROP OWNED BY app; DROP ROLE app")


def test_settling_takes_no_right_to_create_tables(
    app_url: str, face: Face, clock: ManualClock, admin: psycopg.Connection
) -> None:
    clock.advance(10 * DAY)
    with face.open(app_url, "orders", clock=clock, history=True, migrate=False) as app:
        settle(app, "a")
        assert [one.key for one in app.history()] == ["a"]
    assert partitions(admin)[2:] == ["20260311", "20260312"]


def test_removing_takes_more_than_the_right_to_settle(
    app_url: str, clock: ManualClock, admin: psycopg.Connection
) -> None:
    clock.advance(DAY)
    with (
        History.open(app_url, clock=clock, migrate=False) as history,
        pytest.raises(StoreError, match=r"permission denied|must be owner"),
    ):
        history.remove_day(FIRST_DAY, DayBounds(0, 0, 0))
    assert partitions(admin) == ["20260301", "20260302"]


def test_a_retention_drops_days_that_no_other_queue_needs(
    queue: QueueFace, postgres_url: str, face: Face, clock: ManualClock, admin: psycopg.Connection
) -> None:
    settle(queue, "first day")
    clock.advance(DAY)
    settle(queue, "second day")
    retention = Retention(history=HOUR)
    with (
        face.open(postgres_url, "invoices", clock=clock, history=True) as other,
        face.open(postgres_url, "orders", clock=clock, history=True, retention=retention) as short,
    ):
        settle(other, "another queue")
        clock.advance(2 * DAY)
        assert short.try_poll() is None
        assert [row.key for row in other.history()] == ["another queue"]
    assert "20260301" not in partitions(admin)
    assert "20260302" in partitions(admin)
    assert queue.history() == []


def test_a_retention_keeps_the_day_that_is_not_too_old_as_a_whole(
    queue: QueueFace, postgres_url: str, face: Face, clock: ManualClock, admin: psycopg.Connection
) -> None:
    settle(queue, "old")
    clock.advance(2 * HOUR)
    settle(queue, "young")
    retention = Retention(history=DAY)
    with face.open(postgres_url, "orders", clock=clock, retention=retention) as short:
        clock.advance(DAY - HOUR)
        assert short.try_poll() is None
    assert [row.key for row in queue.history()] == ["young"]
    assert "20260301" in partitions(admin)


def test_a_retention_deletes_row_by_row_without_the_right_to_drop_days(
    queue: QueueFace,
    app_url: str,
    face: Face,
    clock: ManualClock,
    admin: psycopg.Connection,
) -> None:
    settle(queue, "a")
    admin.execute("GRANT DELETE ON duequeue_history TO app")
    clock.advance(2 * DAY)
    retention = Retention(history=DAY)
    with face.open(app_url, "orders", clock=clock, retention=retention, migrate=False) as app:
        assert app.try_poll() is None
        assert app.history() == []
    assert "20260301" in partitions(admin)


def test_two_retentions_may_drop_the_same_day_at_once(
    queue: QueueFace,
    postgres_url: str,
    face: Face,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue.offer("a", 1)
    assert claim(queue).bury("enough")
    clock.advance(3 * DAY)
    retention = Retention(history=DAY, buried=DAY)
    with (
        face.open(postgres_url, "orders", clock=clock, retention=retention) as short,
        psycopg.connect(postgres_url) as other,
    ):
        other.execute("DROP TABLE duequeue_history_20260301")
        committing = Timer(0.05, other.commit)
        committing.start()
        assert short.try_poll() is None
        committing.join()
        assert (short.history(), short.buried(1)) == ([], [])
    assert "could not delete what is too old" not in caplog.text


def test_a_retention_without_any_right_does_not_fail_a_poll(
    queue: QueueFace,
    app_url: str,
    face: Face,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settle(queue, "a")
    clock.advance(2 * DAY)
    queue.offer("b", 1)
    retention = Retention(history=DAY)
    with face.open(app_url, "orders", clock=clock, retention=retention, migrate=False) as app:
        assert claim(app).key == "b"
    assert "could not delete old rows" in caplog.text

"""`History`: what a whole database has settled, by UTC day, for those who archive and remove it."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest

from duequeue import (
    BurialReason,
    DayBounds,
    History,
    HistoryDay,
    ManualClock,
    Message,
    QueueClosed,
    ScheduledHour,
    SettledRow,
)
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import DAY, HOUR, MILLISECOND, MINUTE, claim

FIRST_DAY = START.date()
MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)
NEXT_DAY = MIDNIGHT.date()
NOTHING = DayBounds(0, 0, 0)


@pytest.fixture
def queue(open_queue: OpenQueue) -> QueueFace:
    """A queue that keeps its history."""
    return open_queue(history=True)


@pytest.fixture
def history(queue: QueueFace, store_url: str, clock: ManualClock) -> Iterator[History]:
    """The history of the queue's database."""
    with History.open(store_url, clock=clock) as history:
        yield history


def settle(queue: QueueFace, *keys: str) -> None:
    """Have messages come and go."""
    for key in keys:
        queue.offer(key, "x")
        assert claim(queue).ack()


def keys_on(history: History, day: date) -> list[str]:
    first_id, last_id, rows = history.day_bounds(day)
    return [row.key for row in history.day_rows(day, first_id - 1, last_id, rows)]


def test_nothing_was_settled_at_first(history: History) -> None:
    assert history.days() == []
    assert history.day_bounds(FIRST_DAY) == NOTHING
    assert history.day_rows(FIRST_DAY, 0, 1000, 10) == []


def test_a_row_tells_everything(queue: QueueFace, history: History, clock: ManualClock) -> None:
    queue.offer("a", "x", START - 5 * MILLISECOND)
    delivery = claim(queue)
    clock.advance(7 * MILLISECOND)
    delivery.ack()
    first_id, last_id, rows = history.day_bounds(FIRST_DAY)
    assert (first_id, rows) == (last_id, 1)
    start = int(START.timestamp() * 1000)
    assert history.day_rows(FIRST_DAY, first_id - 1, last_id, 10) == [
        SettledRow(first_id, "orders|json", "a", start - 5, start, start + 7, 1, "acked")
    ]


def test_days_begin_at_midnight_in_utc(
    queue: QueueFace, history: History, clock: ManualClock
) -> None:
    clock.set(MIDNIGHT - MILLISECOND)
    settle(queue, "before")
    clock.set(MIDNIGHT)
    settle(queue, "after")
    assert [found.day for found in history.days()] == [FIRST_DAY, NEXT_DAY]
    assert (keys_on(history, FIRST_DAY), keys_on(history, NEXT_DAY)) == (["before"], ["after"])


def test_days_are_told_by_queue(
    open_queue: OpenQueue, history: History, clock: ManualClock
) -> None:
    invoices, texts = open_queue("invoices", history=True), open_queue(history=True, codec=str)
    settle(invoices, "a", "b")
    clock.advance(10 * DAY)
    settle(texts, "c")
    settle(invoices, "d")
    later = FIRST_DAY + timedelta(days=10)
    assert history.days() == [
        HistoryDay(FIRST_DAY, "invoices|json"),
        HistoryDay(later, "invoices|json"),
        HistoryDay(later, "orders|text"),
    ]
    assert keys_on(history, later) == ["c", "d"]


@pytest.mark.parametrize(
    "now", [datetime(1, 1, 1, tzinfo=UTC), datetime(1969, 7, 20, 20, tzinfo=UTC)]
)
def test_days_before_the_epoch(
    queue: QueueFace, history: History, clock: ManualClock, now: datetime
) -> None:
    clock.set(now)
    settle(queue, "a")
    assert [found.day for found in history.days()] == [now.date()]
    assert keys_on(history, now.date()) == ["a"]


def test_ranges_of_ids_cover_a_day_once(queue: QueueFace, history: History) -> None:
    keys = [f"{number:02}" for number in range(25)]
    queue.offer_batch([Message(key, 1) for key in keys])
    queue.ack_many(queue.try_poll_many(25))
    first_id, last_id, rows = history.day_bounds(FIRST_DAY)
    assert rows == 25
    middle = (first_id + last_id) // 2
    found: list[SettledRow] = []
    for after_id, until_id in ((first_id - 1, middle), (middle, last_id)):
        last = after_id
        while chunk := history.day_rows(FIRST_DAY, last, until_id, 4):
            assert len(chunk) <= 4
            found += chunk
            last = chunk[-1].id
    assert [row.id for row in found] == sorted({row.id for row in found})
    assert sorted(row.key for row in found) == keys


def test_a_day_that_is_over_is_removed(
    queue: QueueFace, history: History, clock: ManualClock
) -> None:
    settle(queue, "a", "b")
    clock.set(MIDNIGHT)
    settle(queue, "c")
    assert history.remove_day(FIRST_DAY, history.day_bounds(FIRST_DAY))
    assert [found.day for found in history.days()] == [NEXT_DAY]
    assert [one.key for one in queue.history()] == ["c"]
    assert history.day_bounds(FIRST_DAY) == NOTHING
    assert history.remove_day(FIRST_DAY, NOTHING)


def test_today_is_never_removed(queue: QueueFace, history: History, clock: ManualClock) -> None:
    settle(queue, "a")
    clock.set(MIDNIGHT - MILLISECOND)
    bounds = history.day_bounds(FIRST_DAY)
    for day in (FIRST_DAY, NEXT_DAY):
        with pytest.raises(ValueError, match=r"day must be over.*2026-03-0"):
            history.remove_day(day, bounds)
    assert keys_on(history, FIRST_DAY) == ["a"]


def test_rows_that_came_late_keep_the_day(
    queue: QueueFace, history: History, clock: ManualClock
) -> None:
    settle(queue, "a")
    bounds = history.day_bounds(FIRST_DAY)
    settle(queue, "late")
    clock.set(MIDNIGHT)
    assert not history.remove_day(FIRST_DAY, bounds)
    assert keys_on(history, FIRST_DAY) == ["a", "late"]
    assert history.remove_day(FIRST_DAY, history.day_bounds(FIRST_DAY))


def test_a_day_may_come_again(queue: QueueFace, history: History, clock: ManualClock) -> None:
    settle(queue, "a")
    bounds = history.day_bounds(FIRST_DAY)
    clock.set(MIDNIGHT)
    assert history.remove_day(FIRST_DAY, bounds)
    clock.set(MIDNIGHT - MILLISECOND)  # a process whose clock lags
    settle(queue, "late")
    assert keys_on(history, FIRST_DAY) == ["late"]
    assert history.day_bounds(FIRST_DAY).first_id > bounds.last_id


def test_rows_that_were_counted_are_removed_from_today(queue: QueueFace, history: History) -> None:
    settle(queue, "a", "b")
    bounds = history.day_bounds(FIRST_DAY)
    settle(queue, "meanwhile")
    assert history.remove_rows(FIRST_DAY, bounds)
    assert keys_on(history, FIRST_DAY) == ["meanwhile"]


def test_rows_that_were_not_counted_keep_the_others(queue: QueueFace, history: History) -> None:
    settle(queue, "a", "b", "c")
    first_id, last_id, rows = history.day_bounds(FIRST_DAY)
    for bounds in (
        DayBounds(first_id, last_id, rows - 1),
        DayBounds(first_id, last_id, rows + 1),
        DayBounds(first_id - 1, last_id, rows),
        DayBounds(first_id, last_id + 1, rows),
    ):
        assert not history.remove_rows(FIRST_DAY, bounds)
        assert not history.remove_rows(NEXT_DAY, bounds)
    assert keys_on(history, FIRST_DAY) == ["a", "b", "c"]
    assert history.remove_rows(FIRST_DAY, DayBounds(first_id, last_id, rows))
    assert history.remove_rows(FIRST_DAY, NOTHING)


def test_rows_are_removed_once(queue: QueueFace, history: History) -> None:
    settle(queue, "a")
    bounds = history.day_bounds(FIRST_DAY)
    assert history.remove_rows(FIRST_DAY, bounds)
    settle(queue, "b")
    assert not history.remove_rows(FIRST_DAY, bounds)
    assert keys_on(history, FIRST_DAY) == ["b"]


def test_every_kind_is_known(open_queue: OpenQueue, history: History) -> None:
    open_queue("invoices", codec=str).offer("a", "x")
    assert {"invoices|text"} <= set(history.kinds())
    assert history.kinds() == sorted(history.kinds())


def test_bad_input_is_refused(history: History) -> None:
    for day in ("2026-03-01", START, None, 20_513):
        for call in (
            lambda day=day: history.day_bounds(day),
            lambda day=day: history.day_rows(day, 0, 1, 1),
            lambda day=day: history.remove_day(day, NOTHING),
            lambda day=day: history.remove_rows(day, NOTHING),
        ):
            with pytest.raises(TypeError, match="day must be a date"):
                call()
    with pytest.raises(TypeError, match="after_id must be an int"):
        history.day_rows(FIRST_DAY, "0", 1, 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="until_id must be an int"):
        history.day_rows(FIRST_DAY, 0, None, 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="limit must be an int"):
        history.day_rows(FIRST_DAY, 0, 1, 1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bounds must be DayBounds"):
        history.remove_day(FIRST_DAY, (0, 0, 0))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bounds must be DayBounds"):
        history.remove_rows(FIRST_DAY, None)  # type: ignore[arg-type]
    assert history.day_rows(FIRST_DAY, 0, 1, -1) == []


def test_a_closed_history_is_closed(history: History) -> None:
    history.close()
    history.close()
    with pytest.raises(QueueClosed, match="History at"):
        history.days()


def test_reasons_of_burials_are_counted(
    queue: QueueFace, open_queue: OpenQueue, history: History, clock: ManualClock
) -> None:
    bury(queue, "too old", "a")
    clock.advance(DAY)
    since = clock.now()
    bury(queue, "no such customer", "b", "c")
    clock.advance(MILLISECOND)
    bury(queue, "too dear", "d")
    invoices = open_queue(name="invoices", codec=str)
    bury(invoices, "no such customer", "e")
    assert queue.revive("c")
    last = round(clock.now().timestamp() * 1000)
    assert history.burial_reasons(since) == [
        BurialReason("invoices|text", "no such customer", 1, last),
        BurialReason("orders|json", "too dear", 1, last),
        BurialReason("orders|json", "no such customer", 1, last - 1),
    ]
    bury(queue, "no such customer", "f")
    assert history.burial_reasons(since, limit=1) == [
        BurialReason("orders|json", "no such customer", 2, last)
    ]
    assert len(history.burial_reasons(START)) == 4


def test_scheduled_messages_are_counted_by_hour(
    queue: QueueFace, open_queue: OpenQueue, history: History, clock: ManualClock
) -> None:
    clock.advance(40 * MINUTE)
    now = clock.now()
    queue.offer("overdue", "x", due=-3 * HOUR)
    queue.offer("now", "x")
    queue.offer("soon", "x", due=10 * MINUTE)
    queue.offer("last", "x", due=DAY - MILLISECOND)
    queue.offer("too late", "x", due=DAY)
    open_queue(name="invoices", codec=str).offer("a", "x", due=20 * MINUTE)
    claim(queue)  # a leased message is still to be settled
    hour = round(START.timestamp() * 1000)
    assert history.scheduled(now, now + DAY) == [
        ScheduledHour("orders|json", hour, 3, 2),
        ScheduledHour("invoices|text", hour + 3_600_000, 1, 0),
        ScheduledHour("orders|json", hour + 24 * 3_600_000, 1, 0),
    ]
    assert history.scheduled(now - DAY, now - DAY) == []


def bury(queue: QueueFace, reason: str, *keys: str) -> None:
    for key in keys:
        queue.offer(key, "x")
        assert claim(queue).bury(reason)

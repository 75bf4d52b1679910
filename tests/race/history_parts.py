"""What the other processes do to a history: settle, make days, and remove them."""

from datetime import datetime

from duequeue import History, ManualClock, Message
from duequeue.contract.faces import SyncFace
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import DAY, HOUR

EVENING = START.replace(hour=23, minute=59, second=59)


def settle_over_days(url: str, name: str, rounds: int) -> list[str]:
    """Settle batches in every way while the days pass; return the keys, one for each row."""
    clock = ManualClock(EVENING)
    settled: list[str] = []
    with SyncFace().open(url, name, clock=clock, history=True) as queue:
        for number in range(rounds):
            keys = [f"{name}-{number}-{each}" for each in range(20)]
            queue.offer_batch([Message(key, 1, clock.now()) for key in keys])
            assert queue.drop(keys[0])
            queue.offer(keys[1], 2, clock.now())
            *acked, buried = queue.try_poll_many(20)
            assert buried.bury("enough")
            assert queue.ack_many(acked) == len(acked)
            settled += [*keys, keys[1]]
            clock.advance(6 * HOUR)
    return settled


def archive_until(url: str, now: datetime, rows: int) -> list[str]:
    """Read and remove days as rows come in, until so many are archived; return their keys.

    By this clock every day is over, so that rows come late all the time.
    """
    archived: list[str] = []
    with History.open(url, clock=ManualClock(now)) as history:
        while len(archived) < rows:
            for day in {found.day for found in history.days()}:
                bounds = history.day_bounds(day)
                found = history.day_rows(day, bounds.first_id - 1, bounds.last_id, bounds.rows + 1)
                if len(found) == bounds.rows and history.remove_day(day, bounds):
                    archived += [row.key for row in found]
    return archived


def open_and_settle(url: str, key: str) -> list[str]:
    """Open, which makes two days, and settle a message of one's own on each of the next ones."""
    clock = ManualClock(START)
    keys = [f"{key}-{number}" for number in range(6)]
    with SyncFace().open(url, "orders", clock=clock, history=True) as queue:
        for each in keys:
            queue.offer(each, 1)
            assert queue.drop(each)
            clock.advance(DAY)
    return keys

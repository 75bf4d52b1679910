"""The ticks of a cron that are in the queue, or that its schedule has."""

from collections.abc import Iterator
from datetime import datetime

from duequeue.cron.installing import CronStatus
from duequeue.message import Snapshot
from duequeue.queue import Queue
from duequeue.schedules.described import schedule_described
from duequeue.schedules.schedule import ticks
from duequeue.schedules.tick import ConfigHash, find_tick


def ticks_in(queue: Queue[bytes], cron: CronStatus) -> Iterator[Snapshot[bytes]]:
    """Return the ticks of a cron that are in the queue, in due order, page by page."""
    prefix = f"{cron.prefix}/{cron.config_hash}/"
    cursor: str | None = None
    while True:
        page = queue.list(prefix=prefix, after=cursor)
        yield from (each for each in page.messages if _is_of(each.key, cron))
        cursor = page.next
        if cursor is None:
            return


def ticks_of(cron: CronStatus, after: datetime) -> Iterator[datetime] | None:
    """Return the ticks that the schedule of a cron has, or None if only its program knows them.

    The schedule is read from its description. Its hash proves that it was understood.
    """
    schedule = schedule_described(cron.schedule)
    if schedule is None or ConfigHash.of(schedule) != cron.config_hash:
        return None
    return ticks(schedule, after)


def _is_of(key: str, cron: CronStatus) -> bool:
    tick = find_tick(key)
    return tick is not None and (tick.prefix, tick.config_hash) == (cron.prefix, cron.config_hash)

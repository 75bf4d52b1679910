"""The examination of one queue, on any store."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from duequeue.cli.numbers import counted
from duequeue.instants import words_for
from duequeue.port.examining import Finding, Level
from duequeue.queue import Queue

LATE = timedelta(minutes=5)


def examine_queue(queue: Queue[bytes], now: datetime, allowed: timedelta) -> Iterator[Finding]:
    """Look for late and buried messages, and for crons that do not tick."""
    about = f"queue {queue.name}"
    stats = queue.stats()
    late = timedelta(0) if stats.oldest_due_at is None else now - stats.oldest_due_at
    limit = f"{words_for(allowed)} (--late)"
    if late > allowed:
        oldest = f"the oldest for {words_for(late)}, which is longer than {limit}."
        text = f"{counted(stats.due, 'message')} due, {oldest}"
        advice = "Check that its workers are running, and that there are enough of them."
        yield Finding(Level.ADVICE, about, text, advice)
    if stats.buried:
        advice = "`duequeue buried ls` shows the reasons. Then revive or purge the messages."
        text = f"{counted(stats.buried, 'message')} buried."
        yield Finding(Level.ADVICE, about, text, advice)
    if late <= allowed and not stats.buried:
        oldest = f", the oldest for {words_for(late)} and none for longer than {limit}"
        due = f"{stats.due:,} due{oldest}" if stats.due else "none of them due"
        text = f"{counted(stats.total, 'message')}, {due}. None buried."
        yield Finding(Level.OK, about, text)
    for cron in queue.cron.list():
        if cron.next_tick is None and not cron.paused:
            text = f"The cron {cron.prefix!r} is installed, but has no future tick."
            advice = (
                "Check that a program that installs it is running. A schedule that has ended "
                "has no more ticks."
            )
            yield Finding(Level.ADVICE, about, text, advice)

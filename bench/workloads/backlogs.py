"""Polls beside millions of other messages: for later, not yet vacuumed, or of other queues."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median

import psycopg

from bench.contender import BATCH, Contender
from bench.workload import Outcome, Workload, rate
from tests.fixtures.mariadb import connected

TURNS = 200
CHUNK = 10_000
OTHERS = 100_000

# Due messages of many other queues in the same table.
OTHER_QUEUES = """
    INSERT INTO duequeue_kind (kind) SELECT 'other-' || n FROM generate_series(1, %(queues)s) AS n
"""
OTHER_MESSAGES = """
    INSERT INTO duequeue_message (due_at, asked_at, created_at, kind_id, key, payload)
    SELECT 1, 1, 0, 2 + n %% %(queues)s, 'other-' || n, '\\x31'
    FROM generate_series(1, %(messages)s) AS n
"""


def future(contender: Contender, messages: int) -> Outcome:
    """Measure how much slower a poll is beside many messages that are due in a year."""
    empty = _usual_turn(contender)
    contender.fill_future(messages)
    return _compared(empty, _usual_turn(contender))


def pinned(contender: Contender, messages: int) -> Outcome:
    """Measure how much slower a poll is while a snapshot keeps acked rows from being removed."""
    empty = _usual_turn(contender)
    with _snapshot(contender.url):
        for start in range(0, messages, CHUNK):
            chunk = min(CHUNK, messages - start)
            contender.load(chunk)
            contender.poll_ack_many(chunk)
        return _compared(empty, _usual_turn(contender))


def many_queues(queues: int, contender: Contender, messages: int) -> Outcome:
    """Measure how fast one queue is polled beside 100,000 messages of other queues."""
    with psycopg.connect(contender.url, autocommit=True) as connection:
        connection.execute(OTHER_QUEUES, {"queues": queues})
        connection.execute(OTHER_MESSAGES, {"queues": queues, "messages": OTHERS})
        connection.execute("VACUUM ANALYZE")
    contender.load(messages)
    return rate(messages, contender.poll_ack_many(messages))


def _usual_turn(contender: Contender) -> float:
    contender.take_turns(BATCH)  # by then everything is warm
    return median(contender.take_turns(TURNS))


def _compared(empty: float, full: float) -> Outcome:
    return Outcome({"times slower": full / empty, "p50 ms": full, "when empty": empty})


@contextmanager
def _snapshot(url: str) -> Iterator[None]:
    if url.startswith("mariadb"):
        with connected(url) as cursor:
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            yield
        return
    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT 1")
        yield


def _many_queues(queues: int) -> Workload:
    return Workload(
        f"queues-{queues}",
        f"One table for {queues:,} more queues" if queues > 1 else "One table for another queue",
        "Poll 100 and ack, in a table that holds a hundred thousand due messages of other queues.",
        "poll_ack_many",
        partial(many_queues, queues),
        full=10_000,
        rounds=2,
        only=("duequeue",),
    )


WORKLOADS = [
    Workload(
        "future-1m",
        "A million messages for later",
        "A poll of one message, compared with the same in an empty table.",
        "fill_future",
        future,
        full=1_000_000,
        better="less",
        rounds=1,
    ),
    Workload(
        "future-10m",
        "Ten million messages for later",
        "A poll of one message, compared with the same in an empty table.",
        "fill_future",
        future,
        full=10_000_000,
        better="less",
        rounds=1,
        patience=900,
        only=("duequeue",),
    ),
    Workload(
        "pinned",
        "A snapshot held open",
        "A poll of one message after that many were acked, while no vacuum or purge may clean them "
        "up.",
        "poll_ack_many",
        pinned,
        full=30_000,
        better="less",
        rounds=1,
        only=("duequeue", "seed", "pgqueuer", "duequeue-mariadb"),
    ),
    Workload(
        "pinned-1m",
        "A snapshot held open, a million acked",
        "The same after a million.",
        "poll_ack_many",
        pinned,
        full=1_000_000,
        better="less",
        rounds=1,
        patience=900,
        only=("duequeue",),
    ),
    _many_queues(1),
    _many_queues(100),
    _many_queues(10_000),
]

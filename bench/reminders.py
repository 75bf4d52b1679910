"""The messages of the workloads on Spark, as a DataFrame, as Arrow batches, and in the table."""

import time
from collections.abc import Iterator

import psycopg
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.filling import fill_table
from duequeue import Queue

QUEUE = "bench"
CHUNK = 50_000
PARTS = 2

# A hundred bytes of JSON; they are due a millisecond apart.
KEY = "concat('reminder-', id)"
_PAYLOAD = """concat('{"order":"', lpad(id, 10, '0'), '","text":"{text}"}')"""
DUE_AT = "1000000000000 + id"
FILL = """
    INSERT INTO duequeue_message (due_at, asked_at, created_at, kind_id, key, payload)
    SELECT
        1000000000000 + n, 1000000000000 + n, 0, kind.id, 'reminder-' || n,
        convert_to(
            format('{"order":"%%s","text":"%%s"}', lpad(n::text, 10, '0'), repeat('x', 68)), 'UTF8'
        )
    FROM duequeue_kind AS kind, generate_series(0, %(messages)s - 1) AS n
"""


def make_table(url: str) -> None:
    """Create the tables, with one queue in them."""
    Queue.open(url, QUEUE).close()


def empty_table(url: str) -> None:
    """Remove all messages, and reset their ids."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE duequeue_message RESTART IDENTITY")
        connection.execute("CHECKPOINT")


def full_table(url: str, messages: int) -> None:
    """Put in all messages, which were due long ago."""
    make_table(url)
    fill_table(url, "duequeue_message", FILL, messages)


def reminders(spark: SparkSession, messages: int, text: str = "x") -> DataFrame:
    """Return the messages as a DataFrame, which is computed while it is read."""
    return spark.range(0, messages, 1, PARTS).selectExpr(
        f"{KEY} AS key", f"{payload(text)} AS payload", f"{DUE_AT} AS due_at"
    )


def payload(text: str = "x") -> str:
    """Return a hundred bytes of JSON as a Spark expression."""
    return _PAYLOAD.replace("{text}", text * 68)


def reminder_rows(first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Yield the messages as rows of the table."""
    now = time.time_ns() // 1_000_000
    for start in range(first, last, CHUNK):
        numbers = range(start, min(start + CHUNK, last))
        due = pa.array([1_000_000_000_000 + n for n in numbers], pa.int64())
        yield pa.record_batch(
            {
                "key": pa.array([f"reminder-{n}" for n in numbers]),
                "payload": pa.array(
                    [b'{"order":"%010d","text":"%s"}' % (n, b"x" * 68) for n in numbers]
                ),
                "due_at": due,
                "asked_at": due,
                "created_at": pa.repeat(pa.scalar(now, pa.int64()), len(numbers)),
                "kind_id": pa.repeat(pa.scalar(1, pa.int32()), len(numbers)),
            }
        )

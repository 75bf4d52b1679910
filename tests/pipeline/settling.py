"""Histories to archive, and what lies where afterwards."""

from datetime import date
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from duequeue import History, Message, Queue
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.history_frames import archived_rows


def settle(queue: Queue[Any], *keys: str) -> None:
    """Have messages come and go."""
    queue.offer_batch([Message(key, "x") for key in keys])
    assert queue.ack_many(queue.try_poll_many(len(keys))) == len(keys)


def in_archive(spark: SparkSession, folder: Path) -> list[tuple[str, str, str]]:
    """The day, the queue and the key of each row, sorted; twice if it is there twice."""
    rows = archived_rows(spark, Folder(spark, folder), date.min, date.max)
    return sorted((str(row.day), row.queue, row.key) for row in rows.collect())


def in_database(url: str) -> list[str]:
    """The keys of all rows that are still there."""
    with History.open(url) as history:
        days = sorted({found.day for found in history.days()})
        return sorted(
            row.key
            for day in days
            for row in history.day_rows(day, 0, history.day_bounds(day).last_id, 1_000_000)
        )

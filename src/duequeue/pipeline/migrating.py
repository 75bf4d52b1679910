"""`migrate`: a queue moves from one database to another while both are in use.

Each round leases what nobody holds at the source, due or not, offers it at the target, and then
deletes it at the source. What a consumer holds stays until it is settled there; once there is
nothing else, the last round is over. Run again after a crash, with the same checkpoint, a round
that was offered is not offered again.
"""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from duequeue.connect import absolute
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.progress import Progress, Silence
from duequeue.pipeline.streaming_query import BatchTotals, run_query
from duequeue.port.bulk import OfferCounts
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import parse
from duequeue.spark.source import DueQueueSource

OBSERVED = "migrated"
# Producers may be faster than we are.
MOST_ROUNDS = 100


class Migrated(NamedTuple):
    """How many messages have moved, and how many are left: leased, or offered since."""

    moved: int
    left: int


def migrate(
    spark: SparkSession,
    *,
    source: str,
    target: str,
    queue: str,
    checkpoint: str | Path,
    switched: bool = False,
    codec: str = "json",
    progress: Progress | None = None,
    **options: str | int,
) -> Migrated:
    """Move every message that nobody holds from the URL `source` to the URL `target`.

    Of a key that both have, the source's message counts; once producers have `switched` to the
    target, the target's.
    """
    source, target = absolute(source), absolute(target)
    reading = {**options, "url": source, "queue": queue, "codec": codec, "includeFuture": "true"}
    # What cannot be decoded moves as well: it is for a consumer there to bury.
    writing = {"url": target, "queue": queue, "codec": codec, "anyPayload": "true"}
    with OpenBulk(parse(reading)) as old, OpenBulk(parse(writing)) as new:
        _check_apart(old, new)
    told, totals = progress or Silence(), BatchTotals(OBSERVED)
    told.step(f"moving {queue}")
    path = Folder(spark, checkpoint, "checkpoint").path
    left = _Left(free=0, held=0)
    for _ in range(MOST_ROUNDS):
        writer = (
            _messages(spark, reading, switched=switched)
            .writeStream.format(DueQueueSource.name())
            .options(**writing)
            .option("checkpointLocation", path)
        )
        run_query(
            spark,
            writer,
            totals,
            lambda counts: told.still(f"moving {queue}: {counts.get('moved', 0):,} moved"),
            forever=False,
        )
        left = _left(reading)
        if not left.free:
            break
    return Migrated(totals.counts.get("moved", 0), sum(left))


def _messages(spark: SparkSession, reading: dict[str, Any], *, switched: bool) -> DataFrame:
    stream = spark.readStream.format(DueQueueSource.name())
    messages = stream.options(**reading, payloadType="binary").load()
    return (
        messages.select("key", "payload", "due_at", "headers")
        .withColumn("replace", F.lit(not switched))
        .observe(OBSERVED, F.count("*").alias("moved"))
    )


def _check_apart(old: OpenBulk, new: OpenBulk) -> None:
    """Refuse one database under two names: what was offered there would be what is deleted."""
    mark = str(uuid4())
    new.run(partial(new.store.record, mark, OfferCounts(), new.now()))
    seen = old.run(partial(old.store.take_record, mark))
    new.run(partial(new.store.take_record, mark))
    if seen is not None:
        raise ValueError("target must be another database than source, but both are the same")


class _Left(NamedTuple):
    free: int
    held: int


def _left(reading: dict[str, Any]) -> _Left:
    with OpenBulk(parse(reading)) as source:
        counts = source.run(partial(source.store.counts, source.now()))
    return _Left(counts.due + counts.future, counts.leased)

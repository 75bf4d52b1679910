"""`migrate` moves a queue from one database to another while both are in use.

Each round leases the messages that nobody holds at the source, due or not, offers them at the
target, and then deletes them at the source. A message that a consumer holds stays at the source
until it is settled; when only such messages are left, the job ends. After a crash, a run with the
same checkpoint does not offer the messages of a finished round again.
"""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from duequeue.backends import absolute
from duequeue.bulk.port import OfferCounts
from duequeue.errors import InvalidArgument
from duequeue.pipeline.checkpoint import Checkpoint
from duequeue.pipeline.progress import NoProgress, Progress
from duequeue.pipeline.starting import StartingPoint
from duequeue.pipeline.streaming_query import BatchTotals, run_query
from duequeue.spark.open_bulk import FIRST_CONTACT, OpenBulk
from duequeue.spark.options import parse
from duequeue.spark.source import DueQueueSource

OBSERVED = "migrated"
# Producers may offer faster than the job moves.
MOST_ROUNDS = 100


class Migrated(NamedTuple):
    """How many messages have moved, and how many are left because they are leased or new."""

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
    reset_checkpoint: bool = False,
    codec: str = "json",
    progress: Progress | None = None,
    **options: str | int,
) -> Migrated:
    """Move every message that nobody holds from the URL `source` to the URL `target`.

    If both databases have a key, the source's message wins. Once producers have `switched` to the
    target, the target's message wins. If the checkpoint is damaged, `reset_checkpoint` begins a new
    one after the last round that reached the target, as the same consumer.
    """
    source, target = absolute(source), absolute(target)
    reading = {**options, "url": source, "queue": queue, "codec": codec, "includeFuture": "true"}
    # Payloads that cannot be decoded move too; a consumer of the target will bury them.
    writing = {"url": target, "queue": queue, "codec": codec, "anyPayload": "true"}
    with (
        OpenBulk(parse(reading), FIRST_CONTACT) as old,
        OpenBulk(parse(writing), FIRST_CONTACT) as new,
    ):
        _check_different(old, new)
    reporter, totals = progress or NoProgress(), BatchTotals(OBSERVED)
    reporter.step(f"moving {queue}")
    kept = Checkpoint(spark, checkpoint)
    with StartingPoint(kept, None, parse(writing)).begun(parse(reading), reset=reset_checkpoint):
        reading["consumerId"] = parse(reading).consumer_id or kept.consumer()
        left = _Left(free=0, held=0)
        for _ in range(MOST_ROUNDS):
            writer = (
                _messages(spark, reading, switched=switched)
                .writeStream.format(DueQueueSource.name())
                .options(**writing)
                .option("checkpointLocation", kept.path)
            )
            run_query(
                spark,
                writer,
                totals,
                lambda counts: reporter.still(f"moving {queue}: {counts.get('moved', 0):,} moved"),
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


def _check_different(old: OpenBulk, new: OpenBulk) -> None:
    """Refuse one database under two URLs, because the job would delete what it has just offered."""
    mark = str(uuid4())
    new.run(partial(new.store.record, mark, OfferCounts(), new.now()))
    seen = old.run(partial(old.store.take_record, mark))
    new.run(partial(new.store.take_record, mark))
    if seen is not None:
        raise InvalidArgument(
            "target", "must be another database than source, but both URLs name the same one"
        )


class _Left(NamedTuple):
    free: int
    held: int


def _left(reading: dict[str, Any]) -> _Left:
    with OpenBulk(parse(reading)) as source:
        counts = source.run(partial(source.store.counts, source.now()))
    return _Left(counts.due + counts.future, counts.leased)

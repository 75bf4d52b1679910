"""`deliver` handles messages on executors, and acks them when their micro-batch is committed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from duequeue.backends import absolute
from duequeue.backoff import Backoff
from duequeue.codec import CODECS
from duequeue.defaults import JOB_BATCH
from duequeue.errors import InvalidArgument
from duequeue.pipeline.checkpoint import Checkpoint
from duequeue.pipeline.delivering.handling import Handler, Handling
from duequeue.pipeline.delivering.results_folder import ResultsFolder
from duequeue.pipeline.progress import NoProgress, Progress
from duequeue.pipeline.starting import StartingPoint
from duequeue.pipeline.streaming_query import BatchTotals, Counts, run_query
from duequeue.spark.open_bulk import FIRST_CONTACT, OpenBulk
from duequeue.spark.options import Options, parse
from duequeue.spark.read_rows import LEASE, LEASE_TYPE, full_schema
from duequeue.spark.source import DueQueueSource
from duequeue.verdict import Rules

READ = ("key", "payload", "headers", "due_at", "attempt")
OBSERVED = "delivered"


class Delivered(NamedTuple):
    """How many messages were acked, released and buried."""

    acked: int = 0
    released: int = 0
    buried: int = 0


@dataclass(frozen=True)
class ToQueue:
    """Results become messages of a queue, due at once, under the keys of the handled messages."""

    url: str = field(repr=False)
    queue: str


Results: TypeAlias = str | Path | ToQueue | None


def deliver(  # noqa: PLR0913 - all but four are optional
    spark: SparkSession,
    *,
    url: str,
    queue: str,
    handler: Handler,
    checkpoint: str | Path,
    results: Results = None,
    batch: int = JOB_BATCH,
    backoff: Backoff | None = None,
    max_attempts: int | None = None,
    forever: bool = False,
    reset_checkpoint: bool = False,
    progress: Progress | None = None,
    **options: str | int,
) -> Delivered:
    """Pass messages that are due to `handler` on executors, and write its results.

    A message that fails is released with backoff, or buried after `max_attempts`; this does not
    affect the other messages of its batch. If the job is interrupted at any point, run it again,
    and it continues from `checkpoint`. If that is damaged or lost, `reset_checkpoint` begins a new
    one after the last batch of the results, as the same consumer.
    """
    given = {**options, "url": absolute(url), "queue": queue, "payloadType": "binary"}
    parsed = parse(given)
    _check(parsed, batch, max_attempts)
    OpenBulk(parsed, FIRST_CONTACT).close()  # raises at once if the database cannot be reached
    handling = Handling(handler, parsed, Rules(backoff or Backoff(), max_attempts), batch)
    reporter, totals = progress or NoProgress(), BatchTotals(OBSERVED)
    kept = Checkpoint(spark, checkpoint)
    folder = ResultsFolder(spark, results) if isinstance(results, str | Path) else None
    target = _parsed(results, parsed) if isinstance(results, ToQueue) else None
    with StartingPoint(kept, folder, target).begun(parsed, reset=reset_checkpoint):
        given["consumerId"] = parsed.consumer_id or kept.consumer()
        handled = handled_frame(_messages(spark, given, parsed), handling)
        writer = _writer(handled, folder or target, parsed)
        reporter.step(f"delivering {queue}")
        run_query(
            spark,
            writer.option("checkpointLocation", kept.path),
            totals,
            lambda counts: reporter.still(f"delivering {queue}: {counts_in_words(counts)}"),
            forever=forever,
        )
    return Delivered(**totals.counts)


def handled_frame(messages: DataFrame, handling: Handling) -> DataFrame:
    """Handle messages, count their outcomes, and return those that were acked."""

    def handle(rows: pa.Array) -> pa.Array:
        return handling.outcomes(rows)

    returns = "struct<outcome: string, result: string>"
    # The type hints of Spark demand a third argument, which Spark itself warns against.
    handler = arrow_udf(handle, returns)  # type: ignore[call-overload]
    given = F.struct(*messages.columns).withField("due_at", F.unix_millis("due_at"))
    counts = [F.count_if(F.col("outcome") == name).alias(name) for name in Delivered._fields]
    return (
        # Spark computes a nondeterministic function only once for each row.
        messages.withColumn("handled", handler.asNondeterministic()(given))
        .select(*READ, "handled.*")
        .observe(OBSERVED, *counts)
        .where("outcome = 'acked'")
        .drop("outcome")
    )


def counts_in_words(counts: Counts) -> str:
    """Write the counts as text."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "none yet"


def _check(parsed: Options, batch: int, max_attempts: int | None) -> None:
    if parsed.codec not in CODECS:
        raise InvalidArgument("codec", f"must be one of {', '.join(CODECS)}, not {parsed.codec!r}")
    for name, value in (("batch", batch), ("max_attempts", max_attempts)):
        if value is not None and value < 1:
            raise InvalidArgument(name, f"must be a whole number above 0, not {value}")


def _messages(spark: SparkSession, given: Mapping[str, str | int], parsed: Options) -> DataFrame:
    columns = [each for each in full_schema(parsed).fields if each.name in READ]
    schema = StructType(columns).add(LEASE, LEASE_TYPE)
    return spark.readStream.format(DueQueueSource.name()).options(**given).schema(schema).load()


def _parsed(results: ToQueue, reading: Options) -> Options:
    target = parse({"url": absolute(results.url), "queue": results.queue})
    if (target.url, target.kind) == (reading.url, reading.kind):
        raise InvalidArgument(
            "results", "must not go to the queue that is read, because the job would never end"
        )
    return target


def _writer(
    handled: DataFrame, results: ResultsFolder | Options | None, parsed: Options
) -> DataStreamWriter:
    if results is None:
        return handled.writeStream.format("noop")
    if isinstance(results, Options):
        messages = handled.where("result IS NOT NULL").select(
            "key", F.col("result").alias("payload"), F.current_timestamp().alias("due_at")
        )
        place = {"url": results.url, "queue": results.queue}
        return messages.writeStream.format(DueQueueSource.name()).options(**place)
    if parsed.codec != "bytes":
        handled = handled.withColumn("payload", F.col("payload").cast("string"))
    return results.writer(handled)

"""A bulk offer that tells what became of it."""

from functools import partial
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from duequeue.errors import StoreError
from duequeue.port.bulk import OfferCounts
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import parse
from duequeue.spark.session import activate
from duequeue.spark.source import DueQueueSource


def register(spark: SparkSession) -> None:
    """Make `format("duequeue")` known where Spark does not find it by itself."""
    spark.dataSource.register(DueQueueSource)


def offer(
    frame: DataFrame, *, url: str, queue: str, distribute: bool = True, **options: str | int
) -> OfferCounts:
    """Offer a DataFrame and count what was created, updated and ignored.

    Rows of the same key are brought together first, so that they are offered by one writer;
    `distribute=False` spares that shuffle where each key comes once.
    """
    run_id = str(uuid4())
    given = {**options, "url": url, "queue": queue, "runId": run_id}
    checked = parse(given)
    if distribute and "key" in frame.columns:
        frame = frame.repartition("key")
    activate(frame.sparkSession)
    frame.write.format(DueQueueSource.name()).options(**given).mode("append").save()
    with OpenBulk(checked) as bulk:
        counts = bulk.run(partial(bulk.store.take_record, run_id))
    if counts is None:
        raise StoreError(
            f"the DataFrame was offered to {queue!r}, but the note of what became of it is gone: "
            "the connection was lost as it was read, or somebody removed it from "
            "duequeue_stream_commit"
        )
    return counts

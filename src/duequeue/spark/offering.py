"""A bulk offer that returns its counts."""

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
    """Register `format("duequeue")` in a session that does not find it by itself."""
    spark.dataSource.register(DueQueueSource)


def offer(
    frame: DataFrame, *, url: str, queue: str, distribute: bool = True, **options: str | int
) -> OfferCounts:
    """Offer a DataFrame and count what was created, updated and ignored.

    Rows with the same key are first brought together, so that a single writer offers them.
    `distribute=False` saves that shuffle if each key occurs only once.
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
            f"the DataFrame was offered to {queue!r}, but its counts are missing, because the "
            "connection was lost while they were read, or because somebody removed them from "
            "duequeue_stream_commit"
        )
    return counts

"""A bulk offer that returns its counts."""

from functools import partial
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from duequeue.bulk.port import OfferCounts, StreamCounts
from duequeue.errors import StoreError
from duequeue.spark.open_bulk import FIRST_CONTACT, OpenBulk
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
    most = checked.max_connections
    if distribute and "key" in frame.columns:
        frame = frame.repartition("key") if most is None else frame.repartition(most, "key")
    elif most is not None:
        frame = frame.coalesce(most)
    activate(frame.sparkSession)
    with OpenBulk(checked, FIRST_CONTACT) as bulk:  # raises at once if there is no such server
        frame.write.format(DueQueueSource.name()).options(**given).mode("append").save()
        counts = bulk.run(partial(bulk.store.take_record, run_id))
    if counts is None:
        raise StoreError(
            f"the DataFrame was offered to {queue!r}, but its counts are missing, because the "
            "connection was lost while they were read, or because somebody removed them from "
            "duequeue_stream_commit"
        )
    return counts


def stream_counts(*, url: str, queue: str, app: str, **options: str | int) -> StreamCounts | None:
    """Return what became of all rows that a stream has written; None if it has written none.

    `app` is the option `txnAppId` of the stream or, without that option, the id of its query.
    """
    with OpenBulk(parse({**options, "url": url, "queue": queue}), FIRST_CONTACT) as bulk:
        return bulk.run(partial(bulk.store.stream_counts, app))

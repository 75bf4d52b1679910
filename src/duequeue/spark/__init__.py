"""DueQueue on Spark: `format("duequeue")`, and a bulk offer that returns its counts."""

from duequeue.bulk.port import OfferCounts, StreamCounts
from duequeue.errors import MissingExtra

try:
    from duequeue.spark.offering import offer, register, stream_counts
    from duequeue.spark.session import cluster_session, local_session
    from duequeue.spark.source import DueQueueSource
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in {"pyarrow", "pyspark"}:
        raise
    raise MissingExtra("Spark is missing: pip install 'duequeue[spark]'") from error

__all__ = [
    "DueQueueSource",
    "OfferCounts",
    "StreamCounts",
    "cluster_session",
    "local_session",
    "offer",
    "register",
    "stream_counts",
]

"""DueQueue on Spark: `format("duequeue")`, and a bulk offer that tells its counts."""

from duequeue.bulk import OfferCounts
from duequeue.spark.offering import offer, register
from duequeue.spark.session import cluster_session, local_session
from duequeue.spark.source import DueQueueSource

__all__ = ["DueQueueSource", "OfferCounts", "cluster_session", "local_session", "offer", "register"]

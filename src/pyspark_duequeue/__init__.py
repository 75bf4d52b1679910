"""Spark looks for packages named `pyspark_…`, and finds the data source here by itself."""

from duequeue.spark.source import DueQueueSource as DefaultSource

__all__ = ["DefaultSource"]

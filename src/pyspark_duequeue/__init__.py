"""Found by Spark itself, which looks for packages named `pyspark_…`."""

from duequeue.spark.source import DueQueueSource as DefaultSource

__all__ = ["DefaultSource"]

"""How Spark writes timestamps to Parquet files."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

# By default Spark writes INT96, which has neither statistics nor a time zone.
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"


@contextmanager
def microseconds(spark: SparkSession) -> Iterator[None]:
    """Change the type of timestamps, for which a writer has no option.

    A streaming query keeps the type with which it was started.
    """
    before = str(spark.conf.get(_TIMESTAMPS))
    spark.conf.set(_TIMESTAMPS, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(_TIMESTAMPS, before)

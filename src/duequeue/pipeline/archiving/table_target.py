"""An archive in a table of Delta or Iceberg, which commits each batch by itself."""

from contextlib import AbstractContextManager, nullcontext
from datetime import date
from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from duequeue.errors import MissingExtra
from duequeue.pipeline.folder import absolute_path
from duequeue.pipeline.history_frames import ARCHIVED
from duequeue.port.history_table import DayBounds


class TableFormat(NamedTuple):
    """A format of tables: whether a table is named by its path, and the package to install."""

    by_path: bool
    package: str


FORMATS = {
    "delta": TableFormat(by_path=True, package="io.delta:delta-spark"),
    "iceberg": TableFormat(by_path=False, package="org.apache.iceberg:iceberg-spark-runtime"),
}

# The errors of Spark and Delta for a path without a table.
NO_TABLE = {"PATH_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_TABLE_NOT_FOUND"}


class TableTarget:
    """A table with a partition for each day and queue; see `Target`."""

    def __init__(self, spark: SparkSession, form: str, name: str, *, by_path: bool) -> None:
        self.path = absolute_path(name) if by_path else name
        self._spark = spark
        self._form = form
        self._by_path = by_path

    def locked(self) -> AbstractContextManager[None]:
        """Lock nothing, because these tables have no lock."""
        return nullcontext()

    def recover(self) -> dict[date, int]:
        """Return nothing, because a table has all rows of a commit or none."""
        return {}

    def rows_of(self, day: date) -> DataFrame | None:
        """Read the day's partition."""
        rows = self.rows(day, day)
        return None if rows is None or rows.isEmpty() else rows

    def rows(self, first: date, last: date) -> DataFrame | None:
        """Read the rows of some days; return None if there is no table yet."""
        if not self._by_path:
            table = self._spark.table(self.path) if self._is_named() else None
        else:
            table = self._at_path()
        if table is None:
            return None
        missing = [field for field in ARCHIVED.fields if field.name not in table.columns]
        whole = table.withColumns(
            {field.name: F.lit(None).cast(field.dataType) for field in missing}
        )
        return whole.where(F.col("day").between(_date(first), _date(last)))

    def add(self, day: date, rows: DataFrame, bounds: DayBounds, there: int) -> int | None:
        """Keep the rows on the executors, count them, and append them in one commit."""
        kept = rows.withColumn("day", F.lit(day)).persist()
        try:
            copied = kept.count()
            if copied + there != bounds.rows:
                return None
            if copied:
                self._append(kept)
            return copied
        finally:
            kept.unpersist()

    def _append(self, rows: DataFrame) -> None:
        ordered = rows.repartition("queue").sortWithinPartitions("queue", "settled_at", "id")
        writer = ordered.write.format(self._form).mode("append").partitionBy("day", "queue")
        writer = writer.option("mergeSchema", "true")  # a later version may have more columns
        if self._by_path:
            writer.save(self.path)
        else:
            writer.saveAsTable(self.path)

    def compact(self, today: date) -> None:
        """Leave it to the table's own maintenance."""

    def remove_before(self, day: date) -> list[date]:
        """Delete whole partitions, in one commit of the table."""
        quoted = self.path.replace("`", "``")
        name = f"{self._form}.`{quoted}`" if self._by_path else self.path
        if self.rows(date.min, date.max) is not None:
            # The name comes from the user. As an argument it can be a name and nothing else.
            self._spark.sql(
                "DELETE FROM IDENTIFIER(:name) WHERE day < CAST(:day AS date)",
                args={"name": name, "day": day.isoformat()},
            )
        return []

    def _is_named(self) -> bool:
        return self._spark.catalog.tableExists(self.path)

    def _at_path(self) -> DataFrame | None:
        try:
            return self._spark.read.format(self._form).load(self.path)
        except AnalysisException as error:
            if error.getCondition() in NO_TABLE:
                return None
            raise


def _date(day: date) -> Column:
    """Return a day as a column, made from text because Spark cannot take the year 1 from Python."""
    return F.lit(day.isoformat()).cast("date")


def table_target(spark: SparkSession, form: str, name: str) -> TableTarget:
    """Return a table; raise if the package of its format is not on the classpath of Spark."""
    of = FORMATS[form]
    try:
        spark.read.format(form).load("duequeue-looks-for-the-format")
    except Exception as error:
        if "DATA_SOURCE_NOT_FOUND" in str(error):
            raise MissingExtra(
                f"format {form!r} needs the package {of.package} on Spark's classpath: "
                "add --conf spark.jars.packages=… and the settings that its documentation names"
            ) from error
    return TableTarget(spark, form, name, by_path=of.by_path)

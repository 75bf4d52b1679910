"""The history as DataFrames: from the database, and from an archive."""

from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DateType, StructType

from duequeue.backends import absolute
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.history_source import SETTLED, HistorySource
from duequeue.pipeline.joined_files import left_out
from duequeue.port.history_table import DayBounds

ARCHIVED = StructType([*SETTLED.fields]).add("day", DateType())

_DAY = "day="
# Each day of an archive has files with names that begin like this.
MANIFESTS = "_manifest-"

# These columns identify a row. The id is not enough, because a new database, whose ids start again
# at 1, may use the same archive.
IDENTITY = ["id", "key", "settled_at"]


def live_rows(
    spark: SparkSession, url: str, day: date, bounds: DayBounds, schema: StructType = SETTLED
) -> DataFrame:
    """Read a day's rows between two ids from the database, part by part on executors."""
    spark.dataSource.register(HistorySource)
    options = {"url": absolute(url), "day": day.isoformat(), **bounds._asdict()}
    return spark.read.format(HistorySource.name()).schema(schema).options(**options).load()


def archived_rows(spark: SparkSession, folder: Folder, first: date, last: date) -> DataFrame:
    """Read the days of an archive; the schema keeps queue names that look like numbers as text."""
    days = [day_folder(day) for day in days_of(folder) if first <= day <= last]
    if not days:
        return spark.createDataFrame([], ARCHIVED)
    return files_of(spark, folder, _without(folder, days, left_out(folder)))


def _without(folder: Folder, days: list[str], hidden: set[str]) -> list[str]:
    """Return the days, or instead the files of a day of which some are left out."""
    partial = {name.partition("/")[0] for name in hidden}
    found = [day for day in days if day not in partial]
    for day in partial.intersection(days):
        queues = [f"{day}/{queue}" for queue in folder.names(day) if _is_visible(queue)]
        files = [f"{at}/{name}" for at in queues for name in folder.names(at) if _is_visible(name)]
        found += [file for file in files if file not in hidden]
    return found


def _is_visible(name: str) -> bool:
    return not name.startswith(("_", "."))


def files_of(spark: SparkSession, folder: Folder, names: list[str]) -> DataFrame:
    """Read some files or folders of an archive, with the day and queue of their folders."""
    paths = [folder.of(name) for name in names]
    return spark.read.schema(ARCHIVED).option("basePath", folder.path).parquet(*paths)


def days_of(folder: Folder) -> list[date]:
    """List the days that an archive has; folders with other names are not ours."""
    return [day for name in folder.names() if (day := _day_of(name)) is not None]


def _day_of(name: str) -> date | None:
    try:
        day = date.fromisoformat(name.removeprefix(_DAY))
    except ValueError:
        return None
    return day if name == day_folder(day) else None


def day_folder(day: date) -> str:
    """Return the name of a day's folder in an archive."""
    return f"{_DAY}{day.isoformat()}"

"""The sources of messages: files of any format that Spark reads, or a table."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType

from duequeue.errors import InvalidArgument
from duequeue.pipeline.folder import absolute_path

# The column in which Spark puts a line that it cannot parse.
CORRUPT = "_corrupt_record"
TABLE = "table"

_FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".parquet": "parquet", ".orc": "orc"}


def read_source(
    spark: SparkSession, source: str | Path, form: str | None, options: Mapping[str, str]
) -> DataFrame:
    """Read files or a table; the ending of the path gives the format unless `form` does."""
    place = str(source)
    if not place:
        raise InvalidArgument("source", "must not be empty: give a path or the name of a table")
    form = form or _form_of(place)
    if form == TABLE:
        return spark.read.options(**options).table(place)
    try:
        return _read_files(spark, absolute_path(place), form, options)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise InvalidArgument("source", f"{place!r} does not exist") from None
        raise


def _read_files(
    spark: SparkSession, place: str, form: str, options: Mapping[str, str]
) -> DataFrame:
    reader = spark.read.format(form).options(**options)
    if form != "csv":
        return reader.load(place)
    header = {name.lower() for name in options}.isdisjoint({"header", "schema"})
    reader = reader.option("header", "true") if header else reader
    schema = reader.load(place).schema.add(CORRUPT, StringType())
    return reader.schema(schema).option("columnNameOfCorruptRecord", CORRUPT).load(place)


def _form_of(place: str) -> str:
    for ending, form in _FORMATS.items():
        if place.lower().rstrip("/*").removesuffix(".gz").endswith(ending):
            return form
    raise InvalidArgument(
        "source",
        f"{place!r} has no ending of a known format: give the format, which is csv, json, "
        f"parquet, any other format that Spark reads, or {TABLE}",
    )

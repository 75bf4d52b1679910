"""An archive in a table of Delta or Iceberg.

Their packages cannot be installed here, so Spark's own Parquet tables stand in for them. These have
the same interface, but cannot delete rows, and do not commit a batch in one step.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

from duequeue import History, ManualClock, MissingExtra, Queue
from duequeue.contract.fixtures import START
from duequeue.pipeline import archive
from duequeue.pipeline.archiving import job
from duequeue.pipeline.archiving.table_target import TableTarget
from tests.pipeline.settling import in_database, settle

NEXT_DAY = START + timedelta(days=1)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """One kind of database, because the tables are the same for each."""
    return f"sqlite:///{tmp_path / 'queue.db'}"


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A database of Spark, whose tables are in a folder of this test."""
    name = f"lake_{uuid4().hex}"
    spark.sql(f"CREATE DATABASE {name} LOCATION '{tmp_path / 'lake'}'")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


@pytest.mark.parametrize("by_path", [True, False])
def test_rows_move_into_a_table_once(
    spark: SparkSession,
    url: str,
    queue: Queue[Any],
    folder: Path,
    catalog: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    by_path: bool,
) -> None:
    name = str(folder) if by_path else f"{catalog}.history"
    target = TableTarget(spark, "parquet", name, by_path=by_path)
    monkeypatch.setattr(job, "_target", lambda *_: target)
    settle(queue, "a", "b")
    with monkeypatch.context() as patch:
        patch.setattr(History, "remove_day", lambda *_: False)  # as if the run had ended here
        archive(spark, url=url, folder=name, clock=ManualClock(NEXT_DAY))
    settle(queue, "late")
    done = archive(spark, url=url, folder=name, clock=ManualClock(NEXT_DAY))
    assert (done.rows, done.unfinished) == (1, [])
    rows = target.rows(date.min, date.max)
    assert rows is not None
    assert sorted((str(row.day), row.queue, row.key) for row in rows.collect()) == [
        ("2026-03-01", "orders", key) for key in ("a", "b", "late")
    ]
    assert in_database(url) == []


def test_rows_that_were_counted_are_released(
    spark: SparkSession,
    url: str,
    queue: Queue[Any],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = TableTarget(spark, "parquet", str(folder), by_path=True)
    monkeypatch.setattr(job, "_target", lambda *_: target)
    settle(queue, "a")
    context: Any = spark.sparkContext
    java = context._jsc  # noqa: SLF001 - only Java lists them
    before = set(java.getPersistentRDDs())
    archive(spark, url=url, folder=folder, clock=ManualClock(NEXT_DAY))
    assert set(java.getPersistentRDDs()) <= before


def test_a_name_cannot_change_what_is_deleted(
    spark: SparkSession, catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql(f"CREATE TABLE {catalog}.history (day date) USING parquet")
    asked: list[str] = []
    sql = SparkSession.sql

    def noted(self: SparkSession, query: str, args: Any = None) -> Any:
        asked.append(query)
        return sql(self, query, args)

    monkeypatch.setattr(SparkSession, "sql", noted)
    # Spark takes this for the name of the table, because the rest is a comment.
    target = TableTarget(spark, "parquet", f"{catalog}.history --", by_path=False)
    with pytest.raises(AnalysisException) as raised:  # Parquet tables cannot delete
        target.remove_before(date(2026, 3, 1))
    assert raised.value.getCondition() == "UNSUPPORTED_FEATURE.TABLE_OPERATION"
    assert catalog not in asked[0]


def test_a_path_without_a_table_has_no_rows(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = TableTarget(spark, "parquet", str(folder), by_path=True)
    assert target.rows(date.min, date.max) is None
    # Delta's own name for the same error.
    monkeypatch.setattr(CapturedException, "getCondition", lambda _: "DELTA_PATH_DOES_NOT_EXIST")
    assert target.rows(date.min, date.max) is None


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_missing_package_is_named(
    spark: SparkSession, url: str, queue: Queue[Any], folder: Path, form: str
) -> None:
    settle(queue, "a")
    with pytest.raises(MissingExtra, match=f"format '{form}' needs the package .*{form}"):
        archive(spark, url=url, folder=folder, form=form, clock=ManualClock(NEXT_DAY))
    assert in_database(url) == ["a"]
    assert not folder.exists()


def test_another_format_is_refused(spark: SparkSession, url: str, folder: Path) -> None:
    with pytest.raises(ValueError, match="form must be parquet, delta or iceberg, not 'orc'"):
        archive(spark, url=url, folder=folder, form="orc")

"""The example for data teams, on the session of the tests."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.reminders.__main__ import run


def test_every_reminder_is_offered_delivered_and_reported(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(spark, tmp_path, rows=500)
    assert "|      500|" in capsys.readouterr().out
    run(spark, tmp_path, rows=500)  # the second run does not see the first
    printed = capsys.readouterr().out
    assert "OfferCounts(created=500, updated=0, ignored=0)" in printed
    assert "Delivered(acked=500, released=0, buried=0)" in printed
    assert "|      500|" in printed
    assert "were up to an hour late:" in printed
    assert (tmp_path / "report" / "report.html").exists()
    assert spark.read.parquet(str(tmp_path / "sent")).count() == 500

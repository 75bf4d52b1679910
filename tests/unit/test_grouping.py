"""Tests that share something slow to make have a group, and so run in one process."""

from pathlib import Path

import pytest

from tests.fixtures.grouping import group_of


@pytest.mark.parametrize(
    ("fixture", "path", "group"),
    [
        ("spark", "tests/spark/test_sql.py", "spark in spark"),
        ("spark", "tests/spark/test_stream_read.py", "spark in streams"),
        ("frail_server", "tests/sql/test_bulk.py", "frail servers"),
        ("silence", "tests/race/test_no_answer.py", "frail servers"),
        ("stoppable", "tests/race/test_outage.py", "frail servers"),
        ("redis_cluster", "tests/redis/test_cluster.py", "redis_cluster"),
        ("filled_url", "tests/sql/test_history_plans.py", "test_history_plans"),
        ("filled_url", "tests/sql/test_listing_plans.py", "test_listing_plans"),
        ("store_url", "tests/race/test_claims.py", None),
    ],
)
def test_the_group_of_a_test(fixture: str, path: str, group: str | None) -> None:
    assert group_of({"tmp_path", fixture}, Path(path)) == group


def test_a_test_with_spark_and_a_frail_server_goes_where_spark_is() -> None:
    assert group_of({"frail_server", "spark"}, Path("tests/spark/test_crash.py")) == (
        "spark in spark"
    )

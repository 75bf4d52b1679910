"""Spark's own JDBC source, tuned, on the same table."""

from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import DataFrame

from bench.debian import debian_file
from bench.reminders import PARTS
from bench.spark_contender import SparkContender

MESSAGES = """
    SELECT
        key, payload, headers, asked_at, due_at, attempt, created_at, updated_at, leased_until, id
    FROM duequeue_message
"""


class Jdbc(SparkContender):
    """`format("jdbc")` with batches of 10,000, which the driver turns into single inserts."""

    notes = "appends only, so a key that exists is an error; reads instants as numbers"

    def __init__(self, url: str) -> None:
        driver = debian_file("libpostgresql-jdbc-java", "usr/share/java/postgresql.jar")
        self.config = {"spark.driver.extraClassPath": str(driver)}
        super().__init__(url)

    def write(self, frame: DataFrame) -> None:
        """Append the rows."""
        rows = frame.selectExpr(
            "key",
            "CAST(payload AS binary) AS payload",
            "due_at",
            "due_at AS asked_at",
            "CAST(0 AS bigint) AS created_at",
            "1 AS kind_id",
        )
        options: dict[str, Any] = {"dbtable": "duequeue_message", "batchsize": 10_000}
        rows.write.format("jdbc").options(**self._where, **options).mode("append").save()

    def read(self, messages: int) -> DataFrame:
        """Read by ranges of ids."""
        parts: dict[str, Any] = {
            "partitionColumn": "id",
            "lowerBound": 1,
            "upperBound": messages,
            "numPartitions": PARTS,
        }
        source = self.spark.read.format("jdbc").options(**self._where, **parts)
        return source.options(dbtable=f"({MESSAGES}) AS message", fetchsize=10_000).load()

    def write_equal(self, messages: int) -> float:
        """Append new rows, because it has no other way."""
        return self.write_new(messages)

    def write_changed(self, messages: int) -> float:
        """Append new rows too."""
        return self.write_new(messages)

    @property
    def _where(self) -> dict[str, Any]:
        parts = urlsplit(self.url)
        return {
            "url": f"jdbc:postgresql://{parts.hostname}:{parts.port}{parts.path}"
            "?reWriteBatchedInserts=true",
            "user": parts.username,
            "password": parts.password,
            "driver": "org.postgresql.Driver",
        }

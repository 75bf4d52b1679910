"""Payloads as columns: written as JSON, and read back with their types."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from duequeue import Queue
from duequeue.spark import offer
from duequeue.spark.options import parse
from duequeue.spark.written_rows import check_columns
from tests.spark.frames import PAST, rows, session_in
from tests.spark.streams import run_through, to_files

INSTANT = "timestamp'2020-01-01 00:00:00Z'"
STRUCT = "n bigint, at timestamp, tags array<string>, more map<string,decimal(5,2)>"


def offered(spark: SparkSession, url: str, payload: str) -> None:
    frame = spark.sql(f"SELECT 'a' AS key, {payload} AS payload, timestamp'2020-01-01' AS due_at")
    assert offer(frame, url=url, queue="orders").created == 1


def read(spark: SparkSession, url: str, schema: str, **options: str) -> DataFrame:
    given = {"url": url, "queue": "orders", "payloadSchema": schema, **options}
    return spark.read.format("duequeue").options(**given).load()


@pytest.mark.parametrize(
    ("payload", "stored", "schema"),
    [
        (
            f"struct(7 n, {INSTANT} at, array('x', null) tags, map('m', 1.25) more)",
            {"n": 7, "at": "2020-01-01T00:00:00Z", "tags": ["x", None], "more": {"m": 1.25}},
            STRUCT,
        ),
        ("map('x', 1, 'y', null)", {"x": 1, "y": None}, "map<string,int>"),
        ("array(named_struct('n', 1))", [{"n": 1}], "array<struct<n: int>>"),
        ("parse_json('{\"n\": [1, null]}')", {"n": [1, None]}, "variant"),
    ],
)
def test_columns_become_json_and_come_back(
    spark: SparkSession, queue: Queue[Any], url: str, payload: str, stored: Any, schema: str
) -> None:
    with session_in(spark, "Asia/Tokyo"):
        offered(spark, url, payload)
    message = queue.read("a")
    assert message is not None
    assert message.payload == stored
    found = read(spark, url, schema).selectExpr("to_json(payload) AS text").collect()
    back = json.loads(found[0].text)
    assert {**back, "at": stored["at"]} == stored if "at" in stored else back == stored


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_payloads_that_do_not_fit(spark: SparkSession, queue: Queue[Any], url: str) -> None:
    for key, payload in {"good": {"n": 1}, "text": {"n": "1"}, "list": [1], "none": {}}.items():
        queue.offer(key, payload, PAST)
    with pytest.raises(PySparkException, match=r"does not fit its column: Expected `int.*`, got"):
        read(spark, url, "n bigint").collect()
    permissive = read(spark, url, "n bigint", payloadMode="permissive")
    found = {row.key: row.payload and row.payload.n for row in permissive.collect()}
    assert found == {"good": 1, "text": None, "list": None, "none": None}
    empty = permissive.where("payload IS NULL").select("key").collect()
    assert sorted(row.key for row in empty) == ["list", "text"]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_stream_buries_payloads_that_do_not_fit(
    spark: SparkSession, queue: Queue[Any], url: str, tmp_path: Path
) -> None:
    for key, payload in {"good": {"n": 1}, "text": {"n": "1"}, "list": [1]}.items():
        queue.offer(key, payload, PAST)
    given = {"url": url, "queue": "orders", "payloadSchema": "n int"}
    run_through(to_files(spark.readStream.format("duequeue").options(**given).load(), tmp_path))
    reasons = {each.key: each.reason for each in queue.buried(10)}
    assert reasons.keys() == {"text", "list"}
    assert "got `str` - at `$.n`" in reasons["text"]
    assert "got `array`" in reasons["list"]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_columns_are_refused_for_other_codecs_and_types(spark: SparkSession, url: str) -> None:
    frame = rows(spark, [("a", (1,), PAST)], "key string, payload struct<n:int>, due_at timestamp")
    with pytest.raises(PySparkException, match="must be string or binary for the codec text"):
        offer(frame, url=url, queue="orders", codec="text")
    with pytest.raises(PySparkException, match="option 'payloadSchema' must list columns such as"):
        read(spark, url, "bigint")
    with pytest.raises(PySparkException, match="'payload' cannot contain the type"):
        read(spark, url, "d interval day to second").collect()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "payload",
    [
        "struct(double('NaN') n, 1 m)",
        "array(1, float('Infinity'))",
        "map('x', named_struct('n', double('-Infinity')))",
    ],
)
def test_numbers_that_json_cannot_hold_are_refused(
    spark: SparkSession, queue: Queue[Any], url: str, payload: str
) -> None:
    words = (
        "column 'payload' contains NaN or infinity in the row with the key 'a': JSON has neither"
    )
    with pytest.raises(PySparkException, match=words):
        offered(spark, url, payload)
    assert queue.stats().total == 0


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("map<decimal(5,2),int>", r"not decimal\(5,2\)"),
        ("struct<a: array<map<boolean,int>>>", "not boolean"),
        ("map<string,map<struct<n: int>,int>>", "not struct<n:int>"),
        ("map<double,int>", "not double"),
    ],
)
def test_keys_that_json_cannot_hold_are_refused_before_the_job_runs(
    spark: SparkSession,  # parses the types
    kind: str,
    words: str,
) -> None:
    schema = StructType.fromDDL(f"key string, payload {kind}, due_at timestamp")
    assert isinstance(schema, StructType)
    with pytest.raises(TypeError, match=f"'payload' has a map whose keys must be .*{words}"):
        check_columns(schema, parse({"url": "sqlite:////queue.db", "queue": "orders"}))


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_keys_that_json_holds_as_text(spark: SparkSession, queue: Queue[Any], url: str) -> None:
    offered(spark, url, "struct(map(1, 'n') numbers, map(date'2020-01-01', 'd') days)")
    message = queue.read("a")
    assert message is not None
    assert message.payload == {"numbers": {"1": "n"}, "days": {"2020-01-01": "d"}}

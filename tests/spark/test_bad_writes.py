"""What cannot be offered is refused before it is written, by the name of what is wrong."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from duequeue import Queue, StoreError
from duequeue.message import MAX_PAYLOAD_BYTES
from duequeue.spark import offer
from duequeue.spark.options import parse
from tests.fixtures.postgres import PostgresServer
from tests.spark.frames import PAST, SCHEMA, rows
from tests.spark.streams import run_through, to_files


def refused(frame: DataFrame, url: str, words: str, **options: str) -> None:
    """The write fails with these words."""
    given = {"url": url, "queue": "orders", **options}
    with pytest.raises(PySparkException, match=words):
        frame.write.format("duequeue").options(**given).mode("append").save()


@pytest.fixture
def one_row(spark: SparkSession) -> DataFrame:
    return rows(spark, [("a", "1", PAST)])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": ""}, "option 'url' is missing"),
        ({"queue": ""}, "option 'queue' is missing"),
        ({"queue": "a|b"}, r"must not contain '\|'"),
        ({"qeue": "orders"}, "option 'qeue' is unknown; did you mean 'queue'"),
        ({"batchsze": "9"}, "did you mean 'batchSize'"),
        ({"batchSize": "0"}, "option 'batchSize' must be a whole number above 0"),
        ({"numPartitions": "two"}, "option 'numPartitions' must be a whole number above 0"),
        ({"mode": "merge"}, "option 'mode' must be upsert or ignore, not 'merge'"),
        ({"lease": "soon"}, "option 'lease': 'soon' is not a duration"),
        ({"migrate": "perhaps"}, "option 'migrate' must be true or false"),
        ({"url": "memory:"}, "url starts with 'memory', which other processes cannot reach"),
        ({"url": "ftp://host"}, "url starts with 'ftp', which names no store"),
        ({"url": "sqlite://one-slash-missing"}, "three slashes"),
        ({"url": "sqlite:///app.db"}, "url must name an absolute path"),
    ],
)
def test_wrong_options(
    one_row: DataFrame, tmp_path: Path, options: dict[str, str], words: str
) -> None:
    refused(one_row, **{"url": f"sqlite:///{tmp_path}/queue.db", **options}, words=words)


def test_option_names_know_no_case(spark: SparkSession, one_row: DataFrame, url: str) -> None:
    options = {"URL": url, "Queue": "orders", "BATCHSIZE": "5"}
    one_row.write.format("duequeue").options(**options).mode("append").save()
    with Queue.open(url, "orders") as queue:
        assert queue.contains("a")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["key", "payload"], "column 'due_at' is missing; the DataFrame has: key, payload"),
        (["'a' AS k", "payload", "due_at"], "column 'key' is missing"),
        (["*", "1 AS extra"], "column 'extra' cannot be written"),
        (["1 AS key", "payload", "due_at"], "column 'key' must be string, not int"),
        (["key", "1.5 AS payload", "due_at"], "column 'payload' must be string or binary"),
        (["key", "payload", "'now' AS due_at"], "column 'due_at' must be timestamp or bigint"),
        (["key", "payload", "timestamp_ntz'2020-01-01' AS due_at"], "has no time zone"),
        (["*", "map('a', 1) AS headers"], "column 'headers' must be map<string,string>"),
        (["*", "'yes' AS replace"], "column 'replace' must be boolean"),
    ],
)
def test_wrong_columns(one_row: DataFrame, tmp_path: Path, columns: list[str], words: str) -> None:
    refused(one_row.selectExpr(*columns), f"sqlite:///{tmp_path}/queue.db", words)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((None, "1", PAST), "column 'key' is null"),
        (("bad", None, PAST), "column 'payload' is null in the row with the key 'bad'"),
        (("bad", "1", None), "column 'due_at' is null in the row with the key 'bad'"),
        (("", "1", PAST), "column 'key' is empty"),
        (("k" * 201, "1", PAST), "column 'key' has more than 200 characters"),
        (("a\0b", "1", PAST), "column 'key' contains a NUL"),
        (("bad", "{", PAST), "column 'payload' is not JSON in the row with the key 'bad'"),
        (("bad", "hello", PAST), "option codec=text"),
        (("bad", '"' + "x" * MAX_PAYLOAD_BYTES + '"', PAST), "column 'payload' has more than"),
    ],
)
def test_wrong_values(spark: SparkSession, url: str, row: tuple[Any, ...], words: str) -> None:
    with Queue.open(url, "orders") as queue:
        refused(rows(spark, [("good", "1", PAST), row]), url, words)
        assert queue.stats().total == 0, "nothing of the chunk is written"


def test_instants_that_no_clock_shows(spark: SparkSession, url: str) -> None:
    frame = rows(spark, [("bad", "1", 2**62)], "key string, payload string, due_at long")
    refused(frame, url, "column 'due_at' is outside the years 1 to 9999")


def test_a_column_and_an_option_that_contradict_each_other(one_row: DataFrame, url: str) -> None:
    frame = one_row.selectExpr("*", "true AS replace")
    refused(frame, url, "column 'replace' contradicts the option mode=ignore", mode="ignore")


def test_headers_that_are_too_long(spark: SparkSession, url: str) -> None:
    frame = rows(
        spark, [("bad", "1", PAST, {"h": "x" * 9000})], f"{SCHEMA}, headers map<string,string>"
    )
    refused(
        frame,
        url,
        "column 'headers' contains a null or text that is not UTF-8, "
        "or takes more than 8192 bytes in",
    )


def test_text_that_is_none(spark: SparkSession, url: str) -> None:
    """Spark's strings may hold any bytes."""
    latin = "string(X'4BFC6B')"
    keys = spark.sql(f"SELECT {latin} AS key, '1' AS payload, now() AS due_at")
    refused(keys, url, r"column 'key' is not UTF-8 in the row with the key 'K.+xfck'")
    headers = keys.selectExpr("'a' AS key", "payload", "due_at", "map('name', key) AS headers")
    refused(headers, url, "column 'headers' contains a null or text that is not UTF-8")


def test_overwrite_is_refused(one_row: DataFrame, url: str) -> None:
    with pytest.raises(PySparkException, match="would empty the queue: use mode"):
        one_row.write.format("duequeue").options(url=url, queue="orders").mode("overwrite").save()


def test_options_need_not_be_text(tmp_path: Path) -> None:
    given = {"url": f"sqlite:///{tmp_path}/queue.db", "queue": "orders"}
    parsed = parse({**given, "batchSize": 5, "history": True, "migrate": False})
    assert (parsed.batch_size, parsed.history, parsed.migrate) == (5, True, False)
    with pytest.raises(TypeError, match=r"option 'lease' must be a str, .* not timedelta"):
        parse({**given, "lease": timedelta(minutes=5)})


def test_offer_refuses_before_spark_is_asked(one_row: DataFrame, url: str) -> None:
    with pytest.raises(ValueError, match="did you mean 'batchSize'"):
        offer(one_row, url=url, queue="orders", batchSise="5")


def test_a_missing_schema_is_left_alone_when_told_so(one_row: DataFrame, tmp_path: Path) -> None:
    refused(one_row, f"sqlite:///{tmp_path}/queue.db", "duequeue migrate", migrate="false")


def test_passwords_stay_out_of_sight(
    spark: SparkSession,
    one_row: DataFrame,
    postgres_server: PostgresServer,
    ready_database: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(StoreError, match="does not exist") as raised:
        offer(one_row, url=postgres_server.url("no_such_database"), queue="orders")
    options = {"url": ready_database, "queue": "orders"}
    spark.read.format("duequeue").options(**options).load().explain(extended=True)
    frame = spark.readStream.format("duequeue").options(**options).load()
    query = run_through(to_files(frame, tmp_path))
    query.explain(extended=True)
    shown = capfd.readouterr()
    everything = [str(raised.value), shown.out, shown.err, str(query.recentProgress)]
    assert [text for text in everything if postgres_server.password in text] == []


def test_naive_datetimes_are_sparks_to_place(spark: SparkSession, url: str) -> None:
    """A TimestampType has a zone whatever Python object it came from: the session's."""
    save = rows(spark, [("a", "1", datetime(2020, 1, 1))])  # noqa: DTZ001 - that is the point
    assert offer(save, url=url, queue="orders").created == 1

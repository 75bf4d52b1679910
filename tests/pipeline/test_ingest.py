"""`ingest`: rows of any source become messages; those that cannot are set aside."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from duequeue import Queue
from duequeue.bulk.port import OfferCounts
from duequeue.message import MAX_PAYLOAD_BYTES
from duequeue.pipeline import Columns, Ingested, ingest
from duequeue.pipeline.ingesting.frames import checked_rows, messages, rejected
from tests.fixtures.stores import on_redis_too
from tests.spark.frames import PAST, rows

ORDERS = Columns(key="id", due_at="send_at")


def everything(url: str) -> dict[str, Any]:
    with Queue.open(url, "orders") as queue:
        return {each.key: each.payload for each in queue.try_poll_many(1000)}


@on_redis_too
def test_a_csv_file_becomes_messages(spark: SparkSession, url: str, tmp_path: Path) -> None:
    source = tmp_path / "orders.csv"
    source.write_text("id,send_at,name,note\na,2020-01-01T00:00:00Z,Ann,\nb,2020-01-02,Bob,hi\n")
    first = ingest(spark, source, url=url, queue="orders", columns=ORDERS)
    assert first == Ingested(2, OfferCounts(created=2), {}, None)
    again = ingest(spark, source, url=url, queue="orders", columns=ORDERS)
    assert again.offered == OfferCounts(ignored=2)
    assert everything(url) == {
        "a": {"name": "Ann", "note": None},
        "b": {"name": "Bob", "note": "hi"},
    }


def test_paths_may_have_stars(spark: SparkSession, url: str, tmp_path: Path) -> None:
    for key in "ab":
        (tmp_path / f"{key}.csv").write_text(f"id,send_at\n{key},2020-01-01\n")
    done = ingest(spark, tmp_path / "*.csv", url=url, queue="orders", columns=ORDERS)
    assert done.offered == OfferCounts(created=2)
    with pytest.raises(ValueError, match=r"\*\.json' does not exist"):
        ingest(spark, tmp_path / "*.json", url=url, queue="orders", columns=ORDERS)


def test_bad_rows_are_set_aside_with_their_reason(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    source = tmp_path / "orders.csv"
    lines = ["id,send_at,name", "a,2020-01-01,x", ",2020-01-01,x", "b,soon,x", "c,2020-01-01"]
    source.write_text("\n".join(lines))
    done = ingest(
        spark, source, url=url, queue="orders", columns=ORDERS, rejects=tmp_path / "rejects"
    )
    assert done.rejected == {"id is null": 1, "send_at is not a time": 1, "cannot be read": 1}
    assert (done.rows, done.offered) == (4, OfferCounts(created=1))
    assert done.rejects is not None
    kept = [
        json.loads(line)
        for part in Path(done.rejects).glob("*.json")
        for line in part.read_text().splitlines()
    ]
    assert {"id": "b", "send_at": "soon", "name": "x", "reason": "send_at is not a time"} in kept
    assert {row["reason"] for row in kept} == set(done.rejected)
    assert everything(url) == {"a": {"name": "x"}}


def test_without_a_folder_for_them_bad_rows_are_an_error(spark: SparkSession, url: str) -> None:
    frame = rows(spark, [("a", "1", PAST), (None, "1", PAST)])
    with pytest.raises(ValueError, match=r"1 row that cannot be offered \(key is null: 1\)"):
        ingest(spark, frame, url=url, queue="orders")
    assert everything(url) == {}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((None, "1", PAST), "key is null"),
        (("", "1", PAST), "key is empty"),
        (("k" * 201, "1", PAST), "key has more than 200 characters"),
        (("a\0b", "1", PAST), "key contains a NUL"),
        (("a", None, PAST), "payload is null"),
        (("a", "{", PAST), "payload is not JSON"),
        (("a", "[" * 200_000 + "]" * 200_000, PAST), "payload is not JSON"),
        (("a", "1e999", PAST), "payload is not JSON"),
        (("a", "9" * 5000, PAST), "payload is not JSON"),
        (("a", f'"{"x" * MAX_PAYLOAD_BYTES}"', PAST), "payload has more than 8388608 bytes"),
        (("a", "1", None), "due_at is null"),
    ],
)
def test_each_reason(spark: SparkSession, row: tuple[Any, ...], reason: str) -> None:
    checked = checked_rows(
        rows(spark, [("good", "1", PAST), row]), Columns(payload=["payload"]), "json"
    )
    assert [each.reason for each in rejected(checked).collect()] == [reason]
    assert [each.key for each in messages(checked).collect()] == ["good"]


def test_keys_that_are_no_text_are_set_aside(spark: SparkSession, url: str, tmp_path: Path) -> None:
    frame = spark.sql(
        "SELECT string(key) AS key, '1' AS payload, now() AS due_at "
        "FROM VALUES (binary('good')), (X'4BFC6B'), (null) AS given (key)"
    )
    columns = Columns(payload=["payload"])
    with pytest.raises(ValueError, match="key is not UTF-8: 1"):
        ingest(spark, frame, url=url, queue="orders", columns=columns)
    done = ingest(
        spark, frame, url=url, queue="orders", columns=columns, rejects=tmp_path / "rejects"
    )
    assert done.rejected == {"key is not UTF-8": 1, "key is null": 1}
    assert everything(url) == {"good": 1}


def test_json_in_another_encoding_is_none(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 'a' AS key, X'224BFC6B22' AS payload, now() AS due_at")
    (row,) = rejected(checked_rows(frame, Columns(payload=["payload"]), "json")).collect()
    assert row.reason == "payload is not JSON"


def test_numbers_that_are_no_times(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT key, '1' AS payload, due_at FROM VALUES ('nan', double('NaN')), "
        "('endless', double('-Infinity')), ('good', -0.5D) AS given (key, due_at)"
    )
    checked = checked_rows(frame, Columns(payload=["payload"]), "json")
    assert {(each.key, each.reason) for each in rejected(checked).collect()} == {
        ("nan", "due_at is not a time"),
        ("endless", "due_at is not a time"),
    }
    assert [(each.key, each.due_at) for each in messages(checked).collect()] == [("good", -1)]


def test_times_of_every_type(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT 'a' AS key, 1577836800000 AS millis, DATE'2020-01-01' AS day, "
        "TIMESTAMP_NTZ'2020-01-01' AS local, '01.01.2020' AS german"
    )
    for name, pattern in (
        ("millis", None),
        ("day", None),
        ("local", None),
        ("german", "dd.MM.yyyy"),
    ):
        columns = Columns(due_at=name, payload=["key"], due_format=pattern)
        (row,) = messages(checked_rows(frame, columns, "text")).collect()
        assert row.due_at == (1577836800000 if name == "millis" else datetime(2020, 1, 1)), name  # noqa: DTZ001 - as Spark collects them


def test_payloads_of_several_columns(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT 'a' AS key, now() AS due_at, 1 AS n, null AS gone, array(1, 2) AS list, 'x' AS not"
    )
    for names, payload in (
        (["n", "gone"], '{"n":1,"gone":null}'),
        (["list"], "[1,2]"),
        (["n"], "1"),
        ([], '{"n":1,"gone":null,"list":[1,2],"not":"x"}'),
    ):
        (row,) = messages(checked_rows(frame, Columns(payload=names), "json")).collect()
        assert row.payload == payload


def test_headers_and_other_codecs(spark: SparkSession, url: str) -> None:
    frame = spark.sql(
        "SELECT 'a' AS key, TIMESTAMP'2020-01-01' AS due_at, 'plain' AS body, map('x', 'y') AS more"
    )
    columns = Columns(payload=["body"], headers="more")
    ingest(spark, frame, url=url, queue="notes", columns=columns, codec="text")
    with Queue.open(url, "notes", codec=str) as queue:
        delivery = queue.try_poll()
        assert delivery is not None
        assert (delivery.payload, delivery.headers) == ("plain", {"x": "y"})
        assert delivery.due_at == datetime(2020, 1, 1, tzinfo=UTC)


def test_json_and_parquet_and_tables(spark: SparkSession, url: str, tmp_path: Path) -> None:
    frame = rows(spark, [("a", "1", PAST)])
    frame.write.parquet(str(tmp_path / "orders.parquet"))
    frame.write.json(str(tmp_path / "orders.json"))
    frame.createOrReplaceTempView("orders_to_ingest")
    columns = Columns(payload=["payload"])
    given: dict[str, Any] = {"url": url, "queue": "orders", "columns": columns}
    assert ingest(spark, tmp_path / "orders.parquet", **given).offered == OfferCounts(created=1)
    assert ingest(spark, tmp_path / "orders.json", **given).offered == OfferCounts(ignored=1)
    found = ingest(spark, "orders_to_ingest", form="table", **given)
    assert found.offered == OfferCounts(ignored=1)


def test_bad_arguments_name_the_way_out(spark: SparkSession, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'queue.db'}"
    frame = rows(spark, [("a", "1", PAST)])
    for source, columns, words in (
        (
            frame,
            Columns(payload=["due_at"]),
            "'due_at' cannot be the payload by itself, .* timestamp",
        ),
        (frame, Columns(key="id"), "column 'id' is not in the source, which has: key"),
        (tmp_path / "nothing.csv", ORDERS, "nothing.csv' does not exist"),
        (tmp_path / "orders", ORDERS, "give the format, which is csv, json"),
        (
            frame.withColumnRenamed("payload", "reason"),
            Columns(),
            "'reason' has a name that the job",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            ingest(spark, source, url=url, queue="orders", columns=columns)
    with pytest.raises(ValueError, match="did you mean 'mode'"):
        ingest(spark, frame, url=url, queue="orders", mod="ignore")

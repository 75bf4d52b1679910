"""A driver to be killed: `python -m tests.spark.driver <master> <program>`."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from duequeue.spark import local_session
from tests.spark.frames import SCHEMA, messages
from tests.spark.halting import HaltingSource


def read_queue(spark: SparkSession, part: dict[str, Any]) -> StreamingQuery:
    """From a queue that halts, to files."""
    frame = spark.readStream.format("halting").options(**part["options"]).load()
    return _start(frame.writeStream.format("parquet").option("path", part["out"]), part)


def write_queue(spark: SparkSession, part: dict[str, Any]) -> StreamingQuery:
    """From files to a queue that halts."""
    frame = spark.readStream.schema(SCHEMA).json(part["in"])
    return _start(frame.writeStream.format("halting").options(**part["options"]), part)


def offer(spark: SparkSession, part: dict[str, Any]) -> None:
    """A bulk offer."""
    frame = messages(spark, part["rows"]).repartition(4)
    frame.write.format("halting").options(**part["options"]).mode("append").save()


def _start(writer: Any, part: dict[str, Any]) -> StreamingQuery:
    query: StreamingQuery = (
        writer.option("checkpointLocation", part["checkpoint"]).trigger(availableNow=True).start()
    )
    return query


def main(master: str, program: Path) -> None:
    given = json.loads(program.read_text())
    spark = local_session("killed", memory="512m", config={"spark.master": master})
    spark.dataSource.register(HaltingSource)
    queries = []
    for part in given["parts"]:
        query = PARTS[part["does"]](spark, part)
        # One after the other: Spark gives a new Python process ten seconds to come up.
        while query and query.isActive and not Path(part["options"]["marker"]).exists():
            Event().wait(0.1)
        queries.append(query)
    for query in filter(None, queries):
        query.awaitTermination()


PARTS: dict[str, Callable[[SparkSession, dict[str, Any]], StreamingQuery | None]] = {
    "read": read_queue,
    "write": write_queue,
    "offer": offer,
}


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

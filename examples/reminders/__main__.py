"""Schedule reminders from a DataFrame, deliver them, and report: `python -m examples.reminders`."""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from duequeue.pipeline import Received, archive, deliver, report
from duequeue.spark import local_session, offer

QUEUE = "reminders"
OUTPUT = Path("build", "reminders")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all steps in `build/reminders`."""
    parser = argparse.ArgumentParser(prog="examples.reminders", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="how many reminders")
    given = parser.parse_args(arguments)
    print("Start Spark. It takes a while.")
    spark = local_session("reminders")
    run(spark, OUTPUT.absolute(), given.rows)
    spark.stop()


def run(spark: SparkSession, folder: Path, rows: int) -> None:
    """Empty the folder, then offer, deliver, archive and report."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    url = f"sqlite:///{folder / 'reminders.db'}"
    print(f"Offer {rows:,} reminders from a DataFrame:")
    print(offer(reminders(spark, rows), url=url, queue=QUEUE))
    print("Deliver them with Spark:")
    delivered = deliver(
        spark,
        url=url,
        queue=QUEUE,
        handler=send,
        checkpoint=folder / "checkpoint",
        results=folder / "sent",
        history="true",
    )
    print(delivered)
    print("Archive the history as Parquet:")
    print(archive(spark, url=url, folder=folder / "history", include_today=True))
    print("The reminders were due within the last hour, so they were up to an hour late:")
    show_lateness(spark, folder / "history")
    print("Write a report, which you can open in a browser:")
    print(report(spark, folder=folder / "report", archive=folder / "history", url=url).page)


def reminders(spark: SparkSession, rows: int) -> DataFrame:
    """Return one reminder per customer, due within the last hour, as a table would have them."""
    return spark.range(rows).selectExpr(
        "concat('customer-', id) AS key",
        "to_json(struct(id AS customer, 'Your cart misses you' AS text)) AS payload",
        "current_timestamp() - make_interval(0, 0, 0, 0, 0, 0, pmod(id, 3600)) AS due_at",
    )


def send(batch: list[Received]) -> list[object]:
    """Stand for the mail service, and return the result to keep for each message."""
    return [{"sent_to": each.payload["customer"]} for each in batch]


def show_lateness(spark: SparkSession, history: Path) -> None:
    """Print how late the reminders were, from the archive."""
    spark.read.parquet(str(history)).createOrReplaceTempView("history")
    late = "unix_millis(delivered_at) - unix_millis(due_at)"
    spark.sql(
        f"SELECT count(*) AS reminders, percentile({late}, 0.5) AS p50_ms, "  # noqa: S608 - no input
        f"percentile({late}, 0.99) AS p99_ms FROM history"
    ).show()


if __name__ == "__main__":
    main()

"""`duequeue pipeline archive` moves the history from the database into Parquet."""

import argparse
from typing import Any

from duequeue.cli.address import add_url
from duequeue.cli.durations import duration
from duequeue.cli.pipeline.running import Running, add_master, run_job

NOTHING = "there is nothing new to archive; only queues opened with history=True keep a history"
TODAY_STAYS = "the rows of today stay until the day is over, unless you give --include-today"


def add_to(jobs: "argparse._SubParsersAction[Any]") -> None:
    """Add the command and its arguments."""
    parser = jobs.add_parser(
        "archive",
        help="move the history from the database into Parquet files",
        description="Move every day of the history that is over into Parquet files, and remove it "
        "from the database.",
    )
    add_url(parser)
    parser.add_argument(
        "--to", required=True, metavar="FOLDER", help="the folder of the archive, or its URL"
    )
    parser.add_argument(
        "--include-today",
        action="store_true",
        help="also archive what was settled today, until now",
    )
    parser.add_argument(
        "--format",
        choices=("parquet", "delta", "iceberg"),
        default="parquet",
        help="the format of the archive; with delta, --to is the path of a table, and with "
        "iceberg, its name (default: parquet)",
    )
    parser.add_argument(
        "--keep",
        type=duration,
        metavar="TIME",
        help="remove days older than this from the archive, such as 365d (default: keep all)",
    )
    add_master(parser)
    parser.set_defaults(run=lambda given: run_job(given, lambda job: run(given, job)))


def run(given: argparse.Namespace, job: Running) -> str:
    """Archive the history, and return what to print."""
    from duequeue.pipeline import archive
    from duequeue.pipeline.progress import counted

    done = archive(
        job.spark,
        url=given.url,
        folder=given.to,
        include_today=given.include_today,
        form=given.format,
        keep=given.keep,
        progress=job.progress,
    )
    removed = f"\nremoved {counted(len(done.expired), 'old day')}" if done.expired else ""
    if not (done.days or done.unfinished):
        return (NOTHING if given.include_today else f"{NOTHING}; {TODAY_STAYS}") + removed
    rows, days = counted(done.rows, "row"), counted(len(done.days), "day")
    said = f"archived {rows} of {days} in {done.folder}"
    for day in done.unfinished:
        said += f"\n{day} kept changing, so its remaining rows wait for the next run"
    return said + removed

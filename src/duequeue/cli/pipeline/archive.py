"""`duequeue pipeline archive`: the history moves from the database into Parquet."""

import argparse
from typing import Any

from duequeue.cli.address import add_url
from duequeue.cli.pipeline.running import Running, add_master, run_job

NOTHING = "nothing new to archive: rows come from queues that are opened with history=True"
TODAY_STAYS = "those of today stay until it is over, unless you --include-today"


def add_to(jobs: "argparse._SubParsersAction[Any]") -> None:
    """Describe the command."""
    parser = jobs.add_parser(
        "archive",
        help="move the history into Parquet",
        description="Move every day of the history that is over into Parquet files, and remove it "
        "from the database. Whenever it is interrupted, run it again.",
    )
    add_url(parser)
    parser.add_argument("--to", required=True, metavar="FOLDER", help="of the archive")
    parser.add_argument(
        "--include-today", action="store_true", help="also what was settled today, until now"
    )
    add_master(parser)
    parser.set_defaults(run=lambda given: run_job(given, lambda job: run(given, job)))


def run(given: argparse.Namespace, job: Running) -> str:
    """Archive, and say what was done."""
    from duequeue.pipeline import archive

    done = archive(
        job.spark,
        url=given.url,
        folder=given.to,
        include_today=given.include_today,
        progress=job.progress,
    )
    if not (done.days or done.unfinished):
        return NOTHING if given.include_today else f"{NOTHING}; {TODAY_STAYS}"
    days = "1 day" if len(done.days) == 1 else f"{len(done.days):,} days"
    said = f"archived {done.rows:,} rows of {days} in {done.folder}"
    for day in done.unfinished:
        said += f"\n{day} kept changing: what is left of it waits for the next run"
    return said

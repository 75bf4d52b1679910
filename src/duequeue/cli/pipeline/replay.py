"""`duequeue pipeline replay` offers archived messages again."""

import argparse
from typing import Any

from duequeue.cli.address import add_url
from duequeue.cli.pipeline.running import Running, add_master, run_job


def add_to(jobs: "argparse._SubParsersAction[Any]") -> None:
    """Add the command and its arguments."""
    parser = jobs.add_parser(
        "replay",
        help="offer archived messages again at new times",
        description="Offer the messages of Parquet files again. --where, --due and --payload are "
        "SQL expressions over their columns.",
    )
    parser.add_argument(
        "archive", metavar="FOLDER", help="the folder of the Parquet files, which need a column key"
    )
    add_url(parser)
    parser.add_argument("--queue", required=True, metavar="NAME", help="the queue's name")
    parser.add_argument("--codec", default="json", help="the codec of the payloads (default: json)")
    parser.add_argument(
        "--where", default="true", metavar="SQL", help="which rows to offer (default: all)"
    )
    parser.add_argument(
        "--due",
        default="current_timestamp()",
        metavar="SQL",
        help="the new due time (default: now)",
    )
    parser.add_argument(
        "--payload",
        default="payload",
        metavar="SQL",
        help="the payload (default: the column payload)",
    )
    parser.add_argument(
        "--mode",
        choices=("ignore", "upsert"),
        default="ignore",
        help="leave keys alone that are already in the queue, or update them (default: ignore)",
    )
    add_master(parser)
    parser.set_defaults(run=lambda given: run_job(given, lambda job: run(given, job)))


def run(given: argparse.Namespace, job: Running) -> str:
    """Replay the messages, and return what to print."""
    from duequeue.pipeline import replay

    done = replay(
        job.spark,
        given.archive,
        url=given.url,
        queue=given.queue,
        where=given.where,
        due=given.due,
        payload=given.payload,
        mode=given.mode,
        progress=job.progress,
        codec=given.codec,
    )
    created, updated, ignored = done.offered
    return f"replayed: {created:,} created, {updated:,} updated, {ignored:,} ignored"

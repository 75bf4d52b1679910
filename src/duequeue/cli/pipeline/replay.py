"""`duequeue pipeline replay`: what was archived is offered again."""

import argparse
from typing import Any

from duequeue.cli.address import add_url
from duequeue.cli.pipeline.running import Running, add_master, run_job


def add_to(jobs: "argparse._SubParsersAction[Any]") -> None:
    """Describe the command."""
    parser = jobs.add_parser(
        "replay",
        help="offer archived messages again, at new times",
        description="Offer the messages of Parquet files again. --where, --due and --payload are "
        "SQL over their columns. Keys that are in the queue are left alone.",
    )
    parser.add_argument("archive", metavar="FOLDER", help="of Parquet files with keys")
    add_url(parser)
    parser.add_argument("--queue", required=True, help="the queue's name")
    parser.add_argument("--codec", default="json", help="of the payloads (json)")
    parser.add_argument("--where", default="true", metavar="SQL", help="which ones (all)")
    parser.add_argument("--due", default="current_timestamp()", metavar="SQL", help="when (now)")
    parser.add_argument("--payload", default="payload", metavar="SQL", help="what (payload)")
    parser.add_argument("--mode", choices=("ignore", "upsert"), default="ignore", help="(ignore)")
    add_master(parser)
    parser.set_defaults(run=lambda given: run_job(given, lambda job: run(given, job)))


def run(given: argparse.Namespace, job: Running) -> str:
    """Replay, and count."""
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

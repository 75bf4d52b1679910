"""`duequeue pipeline migrate`: a queue moves to another database."""

import argparse
import os
from typing import Any

from duequeue.cli.address import add_url
from duequeue.cli.pipeline.running import Running, add_master, run_job

TARGET_VARIABLE = "DUEQUEUE_TARGET_URL"


def add_to(jobs: "argparse._SubParsersAction[Any]") -> None:
    """Describe the command."""
    parser = jobs.add_parser(
        "migrate",
        help="move a queue to another database, while both are in use",
        description="Move every message that nobody holds to another database; what is leased "
        "stays until it is settled. Run it again to catch up, and once more with --switched when "
        "producers offer to the new database.",
    )
    add_url(parser)
    given = os.environ.get(TARGET_VARIABLE)
    parser.add_argument(
        "--to",
        default=given,
        required=given is None,
        metavar="URL",
        help=f"of the new database; or set {TARGET_VARIABLE}",
    )
    parser.add_argument("--queue", required=True, help="the queue's name")
    parser.add_argument("--codec", default="json", help="of the payloads (json)")
    parser.add_argument("--checkpoint", required=True, metavar="FOLDER", help="the same each time")
    parser.add_argument(
        "--switched", action="store_true", help="of a key that both have, the new one's counts"
    )
    add_master(parser)
    parser.set_defaults(
        run=lambda given: run_job(given, lambda job: run(given, job), other_url=given.to)
    )


def run(given: argparse.Namespace, job: Running) -> str:
    """Migrate, and count."""
    from duequeue.pipeline import migrate

    done = migrate(
        job.spark,
        source=given.url,
        target=given.to,
        queue=given.queue,
        codec=given.codec,
        checkpoint=given.checkpoint,
        switched=given.switched,
        progress=job.progress,
    )
    left = (
        f"{done.left:,} left, which are leased or new: run it again" if done.left else "none left"
    )
    return f"moved {done.moved:,} messages, {left}"

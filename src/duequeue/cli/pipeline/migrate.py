"""`duequeue pipeline migrate` moves a queue to another database."""

import argparse
import os
from typing import Any

from duequeue.cli.address import add_url
from duequeue.cli.pipeline.running import Running, add_master, add_reset, run_job

TARGET_VARIABLE = "DUEQUEUE_TARGET_URL"


def add_to(jobs: "argparse._SubParsersAction[Any]") -> None:
    """Add the command and its arguments."""
    parser = jobs.add_parser(
        "migrate",
        help="move a queue to another database while both are in use",
        description="Move every message that nobody holds to another database. Leased messages "
        "stay until they are settled. Run the job again to catch up, and with --switched once "
        "producers use the new database.",
    )
    add_url(parser)
    given = os.environ.get(TARGET_VARIABLE)
    parser.add_argument(
        "--to",
        default=given,
        required=given is None,
        metavar="URL",
        help=f"the new database (default: ${TARGET_VARIABLE})",
    )
    parser.add_argument("--queue", required=True, metavar="NAME", help="the queue's name")
    parser.add_argument("--codec", default="json", help="the codec of the payloads (default: json)")
    parser.add_argument(
        "--checkpoint",
        required=True,
        metavar="FOLDER",
        help="records where to continue; use the same folder each time",
    )
    parser.add_argument(
        "--switched",
        action="store_true",
        help="if both databases have a key, keep the new database's message",
    )
    add_reset(parser, "the last round that reached the new database")
    add_master(parser)
    parser.set_defaults(
        run=lambda given: run_job(given, lambda job: run(given, job), url_options=("url", "to"))
    )


def run(given: argparse.Namespace, job: Running) -> str:
    """Move the queue, and return what to print."""
    from duequeue.pipeline import migrate
    from duequeue.pipeline.progress import counted

    done = migrate(
        job.spark,
        source=given.url,
        target=given.to,
        queue=given.queue,
        codec=given.codec,
        checkpoint=given.checkpoint,
        switched=given.switched,
        reset_checkpoint=given.reset_checkpoint,
        progress=job.progress,
    )
    moved = f"moved {counted(done.moved, 'message')}"
    if not done.left:
        return f"{moved}, and none is left"
    left = counted(done.left, "leased or new message")
    return f"{moved}; {left} left, so run the command again"

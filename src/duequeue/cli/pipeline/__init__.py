"""`duequeue pipeline`: jobs on Spark, over whole queues."""

import argparse
from typing import Any

from duequeue.cli.pipeline import archive, deliver, ingest, migrate, replay, report

JOBS = (ingest, deliver, archive, report, replay, migrate)


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """Describe the commands."""
    parser = commands.add_parser("pipeline", help="jobs on Spark, over whole queues")
    jobs = parser.add_subparsers(metavar="job", required=True)
    for job in JOBS:
        job.add_to(jobs)

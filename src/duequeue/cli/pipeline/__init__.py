"""`duequeue pipeline` runs jobs on Spark over whole queues."""

import argparse

from duequeue.cli.pipeline import archive, deliver, ingest, migrate, replay, report

JOBS = (ingest, deliver, archive, report, replay, migrate)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command of every job."""
    parser.description = (
        "Run a job on Spark over whole queues. You can interrupt a job at any point, "
        "and run it again to continue."
    )
    jobs = parser.add_subparsers(metavar="job", required=True)
    for job in JOBS:
        job.add_to(jobs)

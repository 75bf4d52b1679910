"""`duequeue pipeline`: jobs on Spark over whole queues, one short file each."""

import argparse
import sys
from functools import partial
from typing import Any

from duequeue.cli.pipeline import ingest
from duequeue.cli.pipeline.running import Job, add_spark, run_job

JOBS: tuple[Job, ...] = (ingest,)


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """Describe the jobs."""
    family = commands.add_parser("pipeline", help="move, deliver and study messages with Spark")
    jobs = family.add_subparsers(metavar="job", required=True)
    for job in JOBS:
        name = job.__name__.rpartition(".")[2]
        parser = jobs.add_parser(name, help=job.HELP, description=job.DESCRIPTION)
        job.add_arguments(parser)
        add_spark(parser)
        parser.set_defaults(run=partial(run, job, name))


def run(job: Job, name: str, given: argparse.Namespace) -> int:
    """Run a job to its end, or until Ctrl-C."""
    try:
        run_job(job, name, given)
    except KeyboardInterrupt:
        print(f"duequeue: {name} was interrupted; run it again to go on", file=sys.stderr)
        return 130
    return 0

"""`duequeue pipeline report`: a page about what became of the messages."""

import argparse
from datetime import timedelta
from typing import Any

from duequeue.cli.address import add_url
from duequeue.cli.pipeline.running import Running, add_master, run_job

STEPS = ("hour", "minute", "second")


def add_to(jobs: "argparse._SubParsersAction[Any]") -> None:
    """Describe the command."""
    parser = jobs.add_parser(
        "report",
        help="tell how many, how late, what went wrong, what is to come",
        description="Write a page and its tables about an archive, about what a database still has "
        "of its history and has scheduled, or about both.",
    )
    add_url(parser, required=False)
    parser.add_argument("--archive", metavar="FOLDER", help="an archive to report on")
    parser.add_argument("--to", required=True, metavar="FOLDER", help="for the page and its tables")
    parser.add_argument("--days", type=int, default=7, help="to report on, until now (7)")
    parser.add_argument("--step", choices=STEPS, default="hour", help="of the plots (hour)")
    add_master(parser)
    parser.set_defaults(run=lambda given: _check_and_run(parser, given))


def _check_and_run(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    if given.archive is None and given.url is None:
        parser.error("name an --archive, a --url, or both: there is nothing to report on")
    return run_job(given, lambda job: run(given, job))


def run(given: argparse.Namespace, job: Running) -> str:
    """Report, and say where."""
    from duequeue.pipeline import report

    done = report(
        job.spark,
        folder=given.to,
        archive=given.archive,
        url=given.url,
        days=given.days,
        step=timedelta(**{f"{given.step}s": 1}),
        progress=job.progress,
    )
    messages = "1 message" if done.settled == 1 else f"{done.settled:,} messages"
    return f"reported on {messages}: {done.page}"

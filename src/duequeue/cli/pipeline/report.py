"""`duequeue pipeline report` writes a page about what became of the messages."""

import argparse
from datetime import timedelta
from typing import Any

from duequeue.cli.address import add_url
from duequeue.cli.pipeline.running import Running, add_master, run_job
from duequeue.defaults import REPORT_DAYS

STEPS = ("day", "hour", "minute", "second")


def add_to(jobs: "argparse._SubParsersAction[Any]") -> None:
    """Add the command and its arguments."""
    parser = jobs.add_parser(
        "report",
        help="write a page: how many, how late, what went wrong, what is to come",
        description="Write a page and its tables about an archive, about the history and the "
        "scheduled messages of a database, or about both.",
    )
    add_url(parser, required=False)
    parser.add_argument("--archive", metavar="FOLDER", help="the archive to report on")
    parser.add_argument(
        "--to",
        required=True,
        metavar="FOLDER",
        help="the folder, or its URL, for the page and its tables",
    )
    parser.add_argument(
        "--days",
        type=int,
        default=REPORT_DAYS,
        metavar="N",
        help=f"how many days to report on, until now (default: {REPORT_DAYS})",
    )
    parser.add_argument(
        "--step", choices=STEPS, help="the step of the plots (default: the one that fits)"
    )
    add_master(parser)
    parser.set_defaults(run=lambda given: _check_and_run(parser, given))


def _check_and_run(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    if given.archive is None and given.url is None:
        parser.error("there is nothing to report on: give --archive, --url, or both")
    return run_job(given, lambda job: run(given, job))


def run(given: argparse.Namespace, job: Running) -> str:
    """Write the report, and return what to print."""
    from duequeue.pipeline import report
    from duequeue.pipeline.progress import counted

    done = report(
        job.spark,
        folder=given.to,
        archive=given.archive,
        url=given.url,
        days=given.days,
        step=None if given.step is None else timedelta(**{f"{given.step}s": 1}),
        progress=job.progress,
    )
    return f"reported on {counted(done.settled, 'message')}: {done.page}"

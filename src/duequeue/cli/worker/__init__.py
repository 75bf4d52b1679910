"""`duequeue worker` passes messages to a function until it is stopped."""

import argparse
from datetime import timedelta
from typing import Any

from duequeue.cli.address import add_url
from duequeue.cli.handler_path import load
from duequeue.cli.worker.alone import work_alone
from duequeue.cli.worker.crew import work_together
from duequeue.cli.worker.settings import WorkerSettings
from duequeue.codec import CODECS
from duequeue.flows.arguments import check_workers


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command and its arguments."""
    parser = commands.add_parser(
        "worker",
        help="pass messages to a function when they are due",
        description="Pass messages to a function when they are due. On SIGTERM or Ctrl-C, the "
        "worker lets running handlers finish and gives the other messages back; a second signal "
        "stops it at once.",
    )
    parser.add_argument(
        "handler", metavar="module:function", help="the handler, which is a def or an async def"
    )
    add_url(parser)
    parser.add_argument("--queue", required=True, metavar="NAME", help="the queue's name")
    parser.add_argument(
        "--codec", choices=CODECS, default="json", help="the codec of the payloads (default: json)"
    )
    for name, number, about in (
        ("--concurrency", 8, "how many handlers run at a time, in each process (default: 8)"),
        ("--batch", 100, "how many messages each process fetches ahead (default: 100)"),
        ("--max-attempts", None, "bury a message that fails N times (default: no limit)"),
        ("--processes", 1, "how many processes to run (default: 1)"),
    ):
        parser.add_argument(name, type=int, default=number, metavar="N", help=about)
    for name, seconds, about in (
        (
            "--lease",
            300,
            "seconds after which a dead worker's messages are delivered again (default: 300)",
        ),
        ("--poll-interval", 3, "seconds between regular looks at the database (default: 3)"),
        ("--grace", 30, "seconds that handlers get to finish after the first signal (default: 30)"),
    ):
        parser.add_argument(
            name, type=_seconds, default=timedelta(seconds=seconds), metavar="SECONDS", help=about
        )
    parser.add_argument("--history", action="store_true", help="keep a row of each settled message")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Check the arguments, then work until stopped."""
    if given.processes < 1:
        raise ValueError(f"processes must be a whole number above 0, not {given.processes}")
    if "://" in given.queue:  # it is not shown, because it may hold a password
        raise ValueError("queue must be a name, not a URL; give the database with --url")
    check_workers(load(given.handler), given.concurrency, given.batch)
    settings = WorkerSettings(
        handler=given.handler,
        url=given.url,
        queue=given.queue,
        codec=given.codec,
        concurrency=given.concurrency,
        batch=given.batch,
        max_attempts=given.max_attempts,
        lease=given.lease,
        poll_interval=given.poll_interval,
        grace=given.grace,
        history=given.history,
    )
    if given.processes == 1:
        return work_alone(settings)
    return work_together(settings, given.processes)


def _seconds(text: str) -> timedelta:
    try:
        return timedelta(seconds=float(text))
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from error

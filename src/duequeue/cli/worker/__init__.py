"""`duequeue worker`: hand a queue's messages to a function, until told to stop."""

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
    """Describe the command."""
    parser = commands.add_parser(
        "worker",
        help="hand messages to a function as they fall due",
        description="Hand messages to a function as they fall due. SIGTERM or Ctrl-C finishes what "
        "runs and gives the rest back; a second one stops at once.",
    )
    parser.add_argument("handler", metavar="module:function", help="def or async def")
    add_url(parser)
    parser.add_argument("--queue", required=True, help="the queue's name")
    parser.add_argument("--codec", choices=CODECS, default="json", help="of the payloads (json)")
    parser.add_argument("--concurrency", type=int, default=8, help="handlers at a time (8)")
    parser.add_argument("--batch", type=int, default=100, help="messages fetched ahead (100)")
    parser.add_argument("--max-attempts", type=int, help="bury after so many (no limit)")
    for name, default, about in (
        ("--lease", 300, "after which a dead worker's messages are delivered again (300)"),
        ("--poll-interval", 3, "between regular looks at the database (3)"),
        ("--grace", 30, "that handlers get to finish after the first signal (30)"),
    ):
        parser.add_argument(
            name, type=_seconds, default=timedelta(seconds=default), metavar="SECONDS", help=about
        )
    parser.add_argument(
        "--history", action="store_true", help="leave a row of each message that is settled"
    )
    parser.add_argument("--processes", type=int, default=1, help="processes of their own (1)")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Work until stopped."""
    if given.processes < 1:
        raise ValueError(f"processes must be a whole number above 0, not {given.processes}")
    if "://" in given.queue:  # not shown: it may hold a password
        raise ValueError("queue must be a name; the database is given with --url")
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
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds") from error

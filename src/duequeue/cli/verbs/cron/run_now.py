"""`duequeue cron run-now` offers one extra message of a cron, due now."""

import argparse

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import named
from duequeue.cli.opening import NothingFound, add_queue, open_raw
from duequeue.cli.output import Output, add_output
from duequeue.cli.verbs.cron.ls import installed
from duequeue.cli.verbs.cron.ticks import ticks_in
from duequeue.cli.when import now
from duequeue.cron.running_now import run_now_key


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Offer one extra message of a cron, due now, with the payload and headers of its next "
        "tick in the queue. The ticks themselves stay as they are."
    )
    parser.add_argument("prefix", help="the prefix of the cron, as `cron ls` shows it")
    add_queue(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Copy the next tick."""
    with open_raw(given) as queue:
        cron = installed(queue, given.prefix)
        tick = next(ticks_in(queue, cron), None)
        if tick is None:
            reason = "it is paused" if cron.paused else "no node has offered one"
            raise NothingFound(
                f"cron {given.prefix!r} has no tick in the queue whose payload could be used, "
                f"because {reason}; offer the message yourself"
            )
        key = run_now_key(given.prefix, now())
        queue.offer(key, tick.payload, replace=False, headers=tick.headers or None)
    Output(given).items([{"key": key, "done": "due now"}], (named("done"), named("key")))
    return ExitCode.DONE

"""`duequeue cron pause` and `duequeue cron resume`."""

import argparse

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import named
from duequeue.cli.opening import add_queue, open_raw
from duequeue.cli.output import Output, add_output
from duequeue.cli.verbs.cron.ls import installed

COLUMNS = (named("state"), named("prefix"))


def add_pause(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of pause."""
    parser.description = (
        "Remove the undelivered ticks of a cron, and let no node create more until it is resumed."
    )
    _add(parser)
    parser.set_defaults(run=run_pause)


def add_resume(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of resume."""
    parser.description = (
        "Let a paused cron tick again. The nodes that have installed it create them within "
        "a minute. Ticks whose time passed during the pause are skipped."
    )
    _add(parser)
    parser.set_defaults(run=run_resume)


def run_pause(given: argparse.Namespace) -> int:
    """Pause the cron."""
    output = Output(given)
    with open_raw(given) as queue:
        if not queue.cron.pause(given.prefix):
            installed(queue, given.prefix)
            output.talk(f"{given.prefix!r} was already paused")
    output.items([{"prefix": given.prefix, "state": "paused"}], COLUMNS, key="prefix")
    return ExitCode.DONE


def run_resume(given: argparse.Namespace) -> int:
    """Resume the cron."""
    output = Output(given)
    with open_raw(given) as queue:
        if not queue.cron.resume(given.prefix):
            installed(queue, given.prefix)
            output.talk(f"{given.prefix!r} was not paused")
    output.items([{"prefix": given.prefix, "state": "running"}], COLUMNS, key="prefix")
    return ExitCode.DONE


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prefix", help="the prefix of the cron, as `cron ls` shows it")
    add_queue(parser)
    add_output(parser, "print only the prefix")

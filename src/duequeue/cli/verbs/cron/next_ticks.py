"""`duequeue cron next` shows when a cron ticks next, or when a schedule would."""

import argparse
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import away, named
from duequeue.cli.numbers import positive
from duequeue.cli.opening import add_queue, open_raw
from duequeue.cli.output import Output, add_output
from duequeue.cli.verbs.cron.ls import installed
from duequeue.cli.verbs.cron.ticks import ticks_in, ticks_of
from duequeue.cli.when import now, stamp
from duequeue.defaults import FEW
from duequeue.errors import InvalidArgument
from duequeue.schedules.crontab import Crontab
from duequeue.schedules.schedule import ticks
from duequeue.schedules.tick import parse_tick_key
from duequeue.schedules.zones import canonical_name

COLUMNS = (named("local", "TICK"), away("at", ""))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Show when a cron ticks next. With --expression, show when a crontab expression would, "
        "which needs no database."
    )
    parser.add_argument("prefix", nargs="?", help="the prefix of the cron, as `cron ls` shows it")
    parser.add_argument("--expression", metavar="CRONTAB", help="such as '30 7 * * MON-FRI'")
    parser.add_argument(
        "-n", type=positive, default=FEW, dest="number", help="how many (default: %(default)s)"
    )
    parser.add_argument(
        "--zone", default="UTC", help="the time zone of the expression and of the output"
    )
    add_queue(parser, required=False)
    add_output(parser, "print only the times")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Show the ticks."""
    if (given.prefix is None) == (given.expression is None):
        raise InvalidArgument("prefix", text="pass either the prefix of a cron, or --expression")
    output = Output(given)
    zone = ZoneInfo(canonical_name(given.zone))
    if given.expression is not None:
        found = list(islice(ticks(Crontab(given.expression, given.zone), now()), given.number))
    else:
        found = _of_cron(given, output)
    facts = (
        {"at": stamp(at), "local": at.astimezone(zone).isoformat(timespec="seconds")}
        for at in found
    )
    output.items(facts, COLUMNS, key="local")
    return ExitCode.DONE if found else ExitCode.NOTHING_FOUND


def _of_cron(given: argparse.Namespace, output: Output) -> list[datetime]:
    with open_raw(given) as queue:
        cron = installed(queue, given.prefix)
        if cron.paused:
            output.talk(f"{given.prefix!r} is paused; these ticks come only if it is resumed")
        found: Iterator[datetime] | None = ticks_of(cron, now())
        if found is None:
            output.talk("only its program knows the schedule; these ticks are in the queue")
            found = (parse_tick_key(tick.key).at for tick in ticks_in(queue, cron))
        return list(islice(found, given.number))

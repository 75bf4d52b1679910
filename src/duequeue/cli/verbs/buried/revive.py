"""`duequeue buried revive` puts buried messages back into the queue."""

import argparse
from functools import partial

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import named
from duequeue.cli.keys import add_keys, for_each_key, keys_of
from duequeue.cli.opening import add_queue, open_raw
from duequeue.cli.output import Output, add_output
from duequeue.cli.when import instant
from duequeue.errors import InvalidArgument

COLUMNS = (named("queue"), named("revived", is_number=True))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Put buried messages back into the queue: the newest burial of each key, unless a message "
        "with that key is in the queue."
    )
    add_keys(parser, "*")
    add_queue(parser)
    parser.add_argument("--id", help="the id of the burial, if it is not the newest of the key")
    parser.add_argument("--all", action="store_true", help="put all of them back")
    parser.add_argument(
        "--reason", metavar="TEXT", help="with --all, only those with this text in the reason"
    )
    parser.add_argument(
        "--due", type=instant, metavar="WHEN", help="when they are due (default: now)"
    )
    add_output(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Put the burials back."""
    output = Output(given)
    if bool(given.keys) == given.all:
        raise InvalidArgument("keys", text="pass either keys or --all")
    if given.reason is not None and not given.all:
        raise InvalidArgument("--reason", "selects among all burials: pass --all with it")
    if given.id is not None and len(given.keys) != 1:
        raise InvalidArgument("--id", "names one burial: pass its key with it")
    with open_raw(given) as queue:
        if not given.all:
            revive = partial(queue.revive, due=given.due, id=given.id)
            return for_each_key(
                keys_of(given),
                output,
                revive,
                "revived",
                "is not buried, or is already in the queue",
            )
        number = queue.revive_all(given.reason, given.due)
    output.items([{"queue": queue.name, "revived": number}], COLUMNS, key="revived")
    return ExitCode.DONE if number else ExitCode.NOTHING_FOUND

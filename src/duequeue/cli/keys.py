"""Commands that do the same to several keys."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import named
from duequeue.cli.output import Output
from duequeue.cli.payloads import STDIN

COLUMNS = (named("done"), named("key"))


def add_keys(parser: argparse.ArgumentParser, number: str = "+") -> None:
    """Add the keys."""
    parser.add_argument(
        "keys",
        metavar="key",
        nargs=number,
        help="the key of a message; - reads keys from standard input, one per line",
    )


def keys_of(given: argparse.Namespace) -> Iterator[str]:
    """Return the given keys, and those on standard input if it is among them."""
    for key in given.keys:
        if key == STDIN:
            yield from (line.rstrip("\r\n") for line in sys.stdin)
        else:
            yield key


def for_each_key(
    keys: Iterable[str],
    output: Output,
    do: Callable[[str], bool],
    done: str,
    otherwise: str = "is not in the queue",
) -> int:
    """Do something to each key, and print the keys for which it worked; remark on the others."""
    missing: list[str] = []

    def results() -> Iterator[dict[str, str]]:
        for key in keys:
            if do(key):
                yield {"key": key, "done": done}
            else:
                missing.append(key)

    output.items(results(), COLUMNS)
    for key in missing:
        output.talk(f"{key!r} {otherwise}")
    return ExitCode.NOTHING_FOUND if missing else ExitCode.DONE

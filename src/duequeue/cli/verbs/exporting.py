"""`duequeue export` writes the messages of a queue as lines of JSON."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.numbers import counted
from duequeue.cli.opening import add_queue, chosen_queue, open_found, place_of
from duequeue.cli.output import as_json
from duequeue.cli.payloads import exact_payload_facts
from duequeue.cli.progress import ProgressCounter
from duequeue.cli.verbs.ls import add_filters, selected
from duequeue.cli.when import stamp
from duequeue.errors import InvalidArgument
from duequeue.message import Snapshot


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Write the messages of a queue as lines of JSON, in due order, for `import`. This "
        "includes leased messages, but not buried ones. The queue stays as it is."
    )
    add_queue(parser)
    add_filters(parser)
    parser.add_argument(
        "--to", metavar="FILE", help="the file, which is replaced at the end (default: stdout)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Write the messages."""
    place = place_of(given)
    found = chosen_queue(given, place)
    progress = ProgressCounter("exported", quiet=given.quiet)
    try:
        with open_found(place, found) as queue, _target(given.to) as target:
            for message in selected(queue, given):
                print(as_json(_facts(message, found.payload_type)), file=target)
                progress.add(1)
            target.flush()
    except KeyboardInterrupt:
        progress.end()
        print(_interrupted(progress.number, given.to), file=sys.stderr)
        return ExitCode.INTERRUPTED
    progress.end()
    return ExitCode.DONE


@contextmanager
def _target(file: str | None) -> Iterator[TextIO]:
    """Open a file under another name, and give it its own name once everything is in it."""
    if file is None:
        yield sys.stdout
        return
    partial = Path(f"{file}.partial")
    try:
        with partial.open("w", encoding="utf-8") as opened:
            yield opened
    except OSError as error:
        raise InvalidArgument("--to", f"{file} cannot be written: {error.strerror}") from error
    partial.replace(file)


def _facts(message: Snapshot[bytes], payload_type: str) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "key": message.key,
        "type": payload_type,
        "due_at": stamp(message.deliver_at or message.due_at),
        **exact_payload_facts(message.payload, payload_type),
    }
    if message.headers:
        facts["headers"] = message.headers
    if message.expires_at is not None:
        facts["expires_at"] = stamp(message.expires_at)
    return facts


def _interrupted(number: int, file: str | None) -> str:
    where = "the output" if file is None else f"{file}.partial"
    return f"duequeue: interrupted; {where} has {counted(number, 'message')}, but not all of them"

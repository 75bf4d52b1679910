"""`duequeue import` offers messages from lines of JSON."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.interrupting import Interrupts
from duequeue.cli.numbered_lines import BadLine, NumberedLine, lines_of
from duequeue.cli.opening import (
    RawCodec,
    add_queue_name,
    existing_queues,
    place_of,
)
from duequeue.cli.payloads import STDIN
from duequeue.cli.progress import ProgressCounter
from duequeue.cli.verbs.offer import queue_name
from duequeue.errors import InvalidArgument
from duequeue.message import Message, OfferOutcome
from duequeue.queue import Queue

CHUNK = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Offer the messages that `export` has written, or others in that form, in batches of "
        f"{CHUNK:,}. A batch with large payloads may be offered in several parts. If the command "
        "is interrupted, run it again: messages that are in the queue are ignored. To leave out "
        "those that were imported and delivered since, pass --skip."
    )
    parser.add_argument(
        "source", nargs="?", default=STDIN, metavar="FILE", help="the file (default: stdin)"
    )
    add_queue_name(parser)
    parser.add_argument(
        "--skip", type=int, default=0, metavar="N", help="leave out the first N lines"
    )
    parser.add_argument(
        "--no-replace", action="store_true", help="leave messages with the same keys as they are"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="check every line, and offer nothing"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Offer the messages."""
    try:
        return _import(given)
    except BadLine as error:
        raise InvalidArgument("file", text=str(error)) from error


def _import(given: argparse.Namespace) -> int:
    place = place_of(given)
    found = existing_queues(place)
    name = queue_name(given, found or [])
    progress = ProgressCounter("checked" if given.dry_run else "imported", quiet=given.quiet)
    with _source(given.source) as source:
        lines = lines_of(source, given.skip)
        first = next(lines, None)
        if first is None:
            progress.end()
            return ExitCode.DONE
        types = {each.payload_type for each in found or [] if each.name == name}
        if types and first.payload_type not in types:
            raise BadLine(first.number, f"type is {first.payload_type}, not {', '.join(types)}")
        every = _of_one_type(first, lines)
        if given.dry_run:
            for _ in every:
                progress.add(1)
            progress.end()
            return ExitCode.DONE
        codec = RawCodec(first.payload_type)
        with place.open(name, codec, migrate=found is None) as queue:
            return _offer(queue, every, given, progress)


def _offer(
    queue: Queue[bytes],
    lines: Iterator[NumberedLine],
    given: argparse.Namespace,
    progress: ProgressCounter,
) -> int:
    outcomes: Counter[OfferOutcome] = Counter()
    last = given.skip
    interrupts = Interrupts()
    try:
        with interrupts.deferred():
            while chunk := list(islice(lines, CHUNK)):
                messages = [_message(line, replace=not given.no_replace) for line in chunk]
                with interrupts.step():
                    outcomes.update(queue.offer_batch(messages))
                    last = chunk[-1].number
                    progress.add(len(chunk))
    except BadLine as error:
        progress.end(_summary(outcomes))
        raise InvalidArgument(
            "file", text=f"{error}; {_so_far(last)}; fix it and pass --skip {last}"
        ) from error
    except KeyboardInterrupt:
        progress.end(_summary(outcomes))
        perhaps = f", and perhaps some of the next {CHUNK:,}" if interrupts.broke_a_step else ""
        words = f"interrupted; {_so_far(last)}{perhaps}; to continue, pass --skip {last}"
        print(f"duequeue: {words}", file=sys.stderr)
        return ExitCode.INTERRUPTED
    progress.end(_summary(outcomes))
    return ExitCode.DONE


def _so_far(last: int) -> str:
    return f"lines 1 to {last:,} are imported" if last else "no line is imported"


def _message(line: NumberedLine, *, replace: bool) -> Message[bytes]:
    return Message(
        line.key, line.payload, line.due_at, replace, line.headers or None, line.expires_at
    )


def _of_one_type(first: NumberedLine, others: Iterator[NumberedLine]) -> Iterator[NumberedLine]:
    yield first
    for line in others:
        if line.payload_type != first.payload_type:
            reason = f"type is {line.payload_type}, but the first line has {first.payload_type}"
            raise BadLine(line.number, reason)
        yield line


def _summary(outcomes: Counter[OfferOutcome]) -> str:
    parts = [f"{outcomes[each]:,} {each.value}" for each in OfferOutcome if outcomes[each]]
    return f": {', '.join(parts)}" if parts else ""


@contextmanager
def _source(file: str) -> Iterator[BinaryIO]:
    if file == STDIN:
        yield sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as opened:
            yield opened
    except OSError as error:
        raise InvalidArgument("file", text=f"{file} cannot be read: {error.strerror}") from error

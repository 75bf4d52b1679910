"""`duequeue top` shows the numbers of all queues, again and again."""

import argparse
import os
import shutil
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from multiprocessing.connection import wait
from typing import Any

from duequeue.cli.durations import add_duration
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import STATS_COLUMNS, stats_facts
from duequeue.cli.numbers import positive
from duequeue.cli.opening import Place, add_queue, open_found, place_of
from duequeue.cli.output import as_json, table
from duequeue.cli.stop_requests import Signals, listening_to_signals
from duequeue.cli.verbs.stats import wanted
from duequeue.cli.when import now, shown, stamp
from duequeue.errors import StoreUnavailable
from duequeue.queue import Queue
from duequeue.queue_names import QueueName

SHOW_OTHER_SCREEN, SHOW_USUAL_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
GO_HOME, ERASE_LINE_END, ERASE_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"

INTERVAL = timedelta(seconds=2)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Show the numbers of one queue, or of every queue, until you press q or Ctrl-C. Each "
        "update reads whole queues."
    )
    add_queue(parser, default="all queues")
    add_duration(
        parser,
        "--interval",
        INTERVAL,
        "the time between two updates",
    )
    parser.add_argument("--count", type=positive, metavar="N", help="stop after N updates")
    parser.add_argument(
        "--jsonl", action="store_true", help="print one JSON object per queue and update"
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Show the numbers until stopped."""
    place = place_of(given)
    found = wanted(given, place)
    with ExitStack() as opened, listening_to_signals() as signals:
        queues = [(each, opened.enter_context(open_found(place, each))) for each in found]
        is_live = sys.stdout.isatty() and not given.jsonl
        draw = _draw if is_live else _print_json if given.jsonl else _print_plain
        keyboard = opened.enter_context(_screen()) if is_live else None
        looks = 0
        while True:
            draw(place, _look(queues))
            looks += 1
            if looks == given.count or _is_stopped(signals, keyboard, given.interval):
                return ExitCode.DONE


def _look(queues: list[tuple[QueueName, Queue[bytes]]]) -> list[dict[str, Any]] | StoreUnavailable:
    try:
        return [stats_facts(found, queue.stats()) for found, queue in queues]
    except StoreUnavailable as error:
        return error  # it may come back, and the watcher wants to see when


def _is_stopped(signals: Signals, keyboard: int | None, interval: timedelta) -> bool:
    sources: list[Any] = [signals.incoming, *([] if keyboard is None else [keyboard])]
    ready = wait(sources, max(0.0, interval.total_seconds()))
    if signals.incoming in ready:
        return True
    if keyboard is None or keyboard not in ready:
        return False
    pressed = os.read(keyboard, 100)  # a file object would keep some keys for itself
    return not pressed or b"q" in pressed.lower()


Look = list[dict[str, Any]] | StoreUnavailable
Draw = Callable[[Place, Look], None]


def _lines(place: Place, look: Look) -> Iterator[str]:
    yield f"{place.backend().address}   {shown(stamp(now()))}   q quits"
    yield ""
    if isinstance(look, StoreUnavailable):
        yield " ".join(str(look).split())
    else:
        yield from table(look, STATS_COLUMNS)


def _draw(place: Place, look: Look) -> None:
    width, height = shutil.get_terminal_size()
    lines = [line[:width] + ERASE_LINE_END for line in _lines(place, look)][:height]
    sys.stdout.write(GO_HOME + "\n".join(lines) + ERASE_BELOW)
    sys.stdout.flush()


def _print_plain(place: Place, look: Look) -> None:
    print(*_lines(place, look), sep="\n", end="\n\n", flush=True)


def _print_json(_: Place, look: Look) -> None:
    at = stamp(now())
    if isinstance(look, StoreUnavailable):
        raise look
    for facts in look:
        print(as_json({"at": at, **facts}), flush=True)


@contextmanager
def _screen() -> Iterator[int | None]:
    """Use the alternate screen; keys come one by one, if standard input is a terminal."""
    before = termios.tcgetattr(sys.stdin) if sys.stdin.isatty() else None
    try:
        if before is not None:
            tty.setcbreak(sys.stdin)
        sys.stdout.write(SHOW_OTHER_SCREEN)
        yield sys.stdin.fileno() if before is not None else None
    finally:
        sys.stdout.write(SHOW_USUAL_SCREEN)
        sys.stdout.flush()
        if before is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)

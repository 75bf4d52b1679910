"""The status line: its words, and how it shares a terminal with what others print."""

import io
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from duequeue import Queue
from duequeue.cli.terminal import ERASE_LINE, Terminal
from duequeue.cli.worker.status import Status, status_line
from duequeue.cli.worker.tally import Counter, Tally
from duequeue.contract.phrases import DAY, HOUR, MILLISECOND, MINUTE, SECOND
from duequeue.events.events import Buried, Delivered, Handled, Offered
from duequeue.instants import words_for
from duequeue.verdict import Acked, Parked, Released
from tests.cli.command import ROOT, command, environment


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (-SECOND, "0 ms"),
        (4 * MILLISECOND, "4 ms"),
        (3.21 * SECOND, "3.2 s"),
        (90 * SECOND, "1.5 min"),
        (25 * HOUR, "25.0 h"),
        (3 * DAY, "3.0 days"),
        (MINUTE, "1.0 min"),
    ],
)
def test_spans_in_words(span: timedelta, words: str) -> None:
    assert words_for(span) == words


def test_the_line_tells_totals_and_what_happened_lately() -> None:
    earlier = Tally(1000, 1, 0, 900, 2 * SECOND, 3)
    now = Tally(1234, 3, 1, 1000, 2.4 * SECOND, 1100)
    told = status_line("orders", now, earlier, 2.0)
    assert told == "orders: 1,234 handled, 3 failed, 1 buried, 117/s, 4 ms late, 1,100 in hand"


def test_the_line_of_an_idle_worker_tells_no_lateness() -> None:
    done = Tally(7, 0, 0, 7, SECOND, 0)
    assert status_line("orders", done, done, 5.0) == (
        "orders: 7 handled, 0 failed, 0 buried, 0/s, 0 in hand"
    )
    assert ", 0.4/s, " in status_line("orders", Tally(2), Tally(0), 5.0)


def test_events_are_counted() -> None:
    count = Counter()
    count(Offered("orders", 1, 0, 0))
    count(Delivered("orders", "a", 1, 2 * SECOND))
    count(Delivered("orders", "a", 2, HOUR))
    for verdict in (Acked(), Released(SECOND), Parked("enough"), None):
        count(Handled("orders", "a", 1, SECOND, verdict, None))
    count(Buried("orders", "a", "enough"))
    assert count.tally(5) == Tally(4, 2, 1, 1, 2 * SECOND, 5)
    total = Tally(1, 2, 7, 3, SECOND, 4) + Tally(1, 1, 2, 1, SECOND, 1)
    assert total == Tally(2, 3, 9, 4, 2 * SECOND, 5)


def test_without_a_terminal_a_line_is_printed_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seconds = 0.0

    def clock() -> float:
        return seconds

    status = Status("orders", Terminal(sys.stderr), clock)
    for _ in range(41):
        status.update(Tally(int(seconds * 100)))
        seconds += 0.5
    status.finish(Tally(2050, 1))
    assert capsys.readouterr().err.splitlines() == [
        "orders: 1,000 handled, 0 failed, 0 buried, 100/s, 0 in hand",
        "orders: 2,000 handled, 0 failed, 0 buried, 100/s, 0 in hand",
        "orders: stopped, 2,050 handled, 1 failed, 0 buried",
    ]


def test_a_quiet_worker_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(sys.stderr, quiet=True)
    with terminal.shared():
        terminal.print("consuming orders")
        Status("orders", terminal).finish(Tally())
    assert capsys.readouterr() == ("", "")


class RecordingDevice(io.RawIOBase):
    """A terminal that records each write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.writes.append(bytes(data))
        return len(data)


def test_a_line_reaches_the_terminal_in_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two writes, another process of the worker could show its status line."""
    device = RecordingDevice()
    screen = io.TextIOWrapper(io.BufferedWriter(device), line_buffering=True)
    monkeypatch.setattr(sys, "stdout", screen)
    with Terminal(screen).shared():
        sys.stdout.write("handled a 1\n")
    assert device.writes == [f"{ERASE_LINE}handled a 1\n".encode()]


@pytest.mark.parametrize("processes", ["1", "2"])
def test_on_a_terminal_the_line_stays_below_all_other_output(
    tmp_path: object, processes: str
) -> None:
    url = f"sqlite:///{tmp_path}/queue.db"
    with (
        Queue[int].open(url, "orders") as queue,
        worker_on_a_terminal(url, f"--processes={processes}", "--log-events") as (worker, read),
    ):
        queue.offer("a", 1)
        shown = read("1 handled, 0 failed")
        assert f"{ERASE_LINE}handled a 1\r\n" in shown
        logged = re.escape(ERASE_LINE) + r"[0-9-]+ [0-9:,]+ INFO duequeue\.events: Handled .*\r\n"
        assert re.search(logged, shown)
        assert f"{ERASE_LINE}orders: " in shown
        worker.send_signal(signal.SIGINT)
        assert read("stopped, 1 handled, 0 failed, 0 buried\r\n").endswith(
            f"{ERASE_LINE}orders: stopped, 1 handled, 0 failed, 0 buried\r\n"
        )
        assert worker.wait() == 0


@contextmanager
def worker_on_a_terminal(
    url: str, *arguments: str
) -> "Iterator[tuple[subprocess.Popen[bytes], Callable[[str], str]]]":
    """Start a worker, yield it with a function that reads its terminal, and end it."""
    ours, theirs = pty.openpty()
    worker = subprocess.Popen(
        command("worker", "tests.cli.handlers:tell", "--queue=orders", *arguments),
        cwd=ROOT,
        env=environment(url),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        yield worker, reader(ours)
    finally:
        worker.kill()
        worker.wait()
        os.close(ours)


def reader(terminal: int) -> Callable[[str], str]:
    """Return what reads a terminal until it shows some words."""

    def read(words: str) -> str:
        shown = ""
        while words not in shown:
            shown += os.read(terminal, 1000).decode()
        return shown

    return read

"""`duequeue stats`, `forecast`, `queues` and `top`."""

import os
import pty
import re
import subprocess
from datetime import UTC, datetime, timedelta
from signal import SIGINT
from typing import Any

import pytest

from duequeue import Message, Queue
from tests.cli.command import ROOT, command, environment
from tests.cli.conftest import DueQueue

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _messages(queue: Queue[Any]) -> None:
    """Two messages that are due, of which one is leased, one for later and one that is buried."""
    queue.offer_batch([Message("a", 1, -HOUR), Message("b", 1, -HOUR), Message("c", 1, 25 * HOUR)])
    queue.offer("d", 1, -2 * HOUR)
    buried, _ = queue.try_poll_many(2)
    buried.bury("enough")


def test_stats_count_one_queue_or_all(
    duequeue: DueQueue, queue: Queue[Any], store_url: str
) -> None:
    with Queue.open(store_url, "invoices"):
        names = [each["queue"] for each in duequeue("stats", "--json").json]
        assert names == ["invoices", "orders"]
        assert duequeue("stats", "-q").lines == names
    (orders,) = duequeue("stats", "--queue", "orders", "--json").json
    counts = {name: orders[name] for name in ("total", "due", "leased", "future", "buried")}
    assert counts == {"total": 3, "due": 1, "leased": 1, "future": 1, "buried": 1}
    assert datetime.fromisoformat(orders["next_due_at"]) > datetime.now(UTC) + 24 * HOUR
    assert duequeue("stats", "--queue", "missing").status == 4
    titles, row = duequeue("stats", "--queue", "orders").lines
    assert titles.split()[:4] == ["QUEUE", "TYPE", "TOTAL", "DUE"]
    assert row.endswith("1.0 h ago   in 25.0 h")


def test_a_forecast_counts_by_bucket(duequeue: DueQueue) -> None:
    hours = duequeue("forecast", "--json").json
    assert len(hours) in {24, 25}
    assert (hours[0]["messages"], hours[0]["overdue"]) == (1, 1)
    days = duequeue("forecast", "--bucket", "1d", "--until", "3d", "--json").json
    assert sum(day["messages"] for day in days) == 2
    assert all(day["begins_at"].endswith("T00:00:00.000Z") for day in days)
    assert "█" in duequeue("forecast", "--bucket", "1d").lines[1]
    too_many = duequeue("forecast", "--bucket", "1ms")
    assert too_many.status == 1
    assert "the limit is 10,000" in too_many.err


def test_queues_are_listed(duequeue: DueQueue) -> None:
    assert duequeue("queues", "--json").json == [{"queue": "orders", "type": "json"}]
    assert duequeue("queues").lines == ["QUEUE   TYPE", "orders  json"]


def test_top_prints_when_nobody_watches(duequeue: DueQueue) -> None:
    ran = duequeue("top", "--count", "2", "--interval", "1ms")
    assert (ran.status, len(re.findall("^orders ", ran.out, re.MULTILINE))) == (0, 2)
    assert "\x1b" not in ran.out
    looks = duequeue("top", "--count", "2", "--interval", "1ms", "--jsonl").jsonl
    assert [(look["queue"], look["due"]) for look in looks] == [("orders", 1), ("orders", 1)]


@pytest.mark.timeout(60, func_only=True)
@pytest.mark.parametrize("end", ["q", "signal"])
def test_top_draws_on_a_terminal(shared_url: str, end: str) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("top", "--interval", "1h"),
        cwd=ROOT,
        env=environment(shared_url) | {"TERM": "xterm", "COLUMNS": "100", "LINES": "20"},
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    try:
        shown = until(ours, b"orders")
        assert b"\x1b[?1049h" in shown
        if end == "q":
            os.write(ours, b"xq")
        else:
            process.send_signal(SIGINT)
        shown = until(ours, b"\x1b[?1049l")
        _, complaints = process.communicate(timeout=30)
        assert (process.returncode, complaints) == (0, b"")
    finally:
        process.kill()
        process.communicate()
        os.close(ours)


def until(terminal: int, wanted: bytes) -> bytes:
    """Read what is drawn until these bytes come."""
    shown = b""
    while wanted not in shown:
        shown += os.read(terminal, 4096)
    return shown

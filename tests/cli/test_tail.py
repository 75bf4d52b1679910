"""`duequeue tail` prints what becomes of messages, as it happens."""

import subprocess
from datetime import timedelta
from signal import SIGINT
from typing import Any

import pytest

from duequeue import Queue
from tests.cli.command import ROOT, command, environment
from tests.cli.conftest import DueQueue

HOUR = timedelta(hours=1)


def settle(queue: Queue[Any], *keys: str) -> None:
    for key in keys:
        queue.offer(key, 1, -HOUR)
        delivery = queue.try_poll()
        assert delivery is not None
        assert delivery.ack()


def test_the_last_rows_are_printed(duequeue: DueQueue, queue: Queue[Any]) -> None:
    empty = duequeue("tail", "--no-follow")
    assert (empty.status, empty.out) == (4, "")
    settle(queue, "a", "b", "c")
    queue.offer("d", 1)
    queue.drop("d")
    assert duequeue("tail", "--no-follow", "-n", "2", "-q").lines == ["c", "d"]
    rows = duequeue("tail", "--no-follow", "--jsonl").jsonl
    assert [(row["key"], row["outcome"]) for row in rows] == [
        *((key, "acked") for key in "abc"),
        ("d", "dropped"),
    ]
    assert duequeue("tail", "--no-follow", "--key", "b", "-q").lines == ["b"]


@pytest.mark.timeout(60, func_only=True)
def test_new_rows_follow(queue: Queue[Any], shared_url: str) -> None:
    settle(queue, "a")
    process = subprocess.Popen(
        command("tail", "--interval", "10ms", "-q"),
        cwd=ROOT,
        env=environment(shared_url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "a\n"
        for key in ("b", "c"):
            settle(queue, key)
            assert process.stdout.readline() == f"{key}\n"
        process.send_signal(SIGINT)
        rest, complaints = process.communicate(timeout=30)
        assert (process.returncode, rest, complaints) == (0, "", "")
    finally:
        process.kill()
        process.communicate()

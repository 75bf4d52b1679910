"""`duequeue worker --processes`: orders reach everybody, and the dead are replaced."""

import os
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM
from typing import Any

import pytest

from duequeue import Message, Queue
from duequeue.contract.stage import until
from tests.cli.command import Worker

# Each process runs one message and holds at most one more: four keep two processes busy.
ONE_EACH = ("--concurrency", "1", "--batch", "1", "--processes", "2")


@pytest.mark.parametrize("url", ["sqlite", "postgres", "http"], indirect=True)
def test_a_process_that_is_killed_is_replaced(url: str, orders: Queue[Any]) -> None:
    orders.offer_batch([Message(str(n), n) for n in range(4)])
    with Worker("hang", url, *ONE_EACH) as worker:
        pids = {int(words[2]) for words in worker.await_lines("begun", 2)}
        assert len(pids) == 2
        killed = pids.pop()
        os.kill(killed, SIGKILL)
        worker.await_lines(f"duequeue: process {killed} exited with -9")
        orders.offer("another", 1)
        (begun,) = worker.await_lines("begun")
        assert int(begun[2]) not in {killed, *pids}
        worker.send(SIGTERM)
        worker.send(SIGINT)
        status, printed = worker.end()
    assert status == 0, printed
    # What the killed one held waits for its lease; all else was given back.
    stats = orders.stats()
    assert stats.total == 5
    assert stats.leased <= 2


@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
def test_a_message_that_kills_its_processes_buries_no_other_one(
    url: str, orders: Queue[Any]
) -> None:
    keys = [f"good-{n:02}" for n in range(40)]
    orders.offer_batch([Message(key, 1) for key in [*keys[:15], "deadly", *keys[15:]]])
    limits = ("--max-attempts", "3", "--lease", "1s", "--processes", "2")
    with Worker("die_of_one", url, *limits) as worker:
        died = worker.await_lines("begun deadly", 3)
        worker.await_lines("duequeue: process", 1)
        until(lambda: orders.stats().total == 0)
        worker.send(SIGTERM)
        _, printed = worker.end()
    (buried,) = orders.buried(10)
    assert (buried.key, buried.attempts) == ("deadly", 3)
    assert "its process died while it was handled" in buried.reason
    assert len({pid for *_, pid in died}) == 3
    assert all(f"begun {key} " in printed for key in keys)


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_a_signal_to_everybody_stops_in_good_order(
    url: str, orders: Queue[Any], tmp_path: Path, number: Any
) -> None:
    pipes = [tmp_path / str(n) for n in range(8)]
    for pipe in pipes:
        os.mkfifo(pipe)
    orders.offer_batch([Message(pipe.name, str(pipe)) for pipe in pipes])
    with Worker("wait", url, *ONE_EACH) as worker:
        begun = worker.await_lines("begun", 2)
        until(lambda: orders.stats().leased == 4)
        worker.send_all(number)
        until(lambda: orders.stats().leased == 2)
        for _, key, _ in begun:
            (tmp_path / key).write_text("go")
        status, printed = worker.end()
    assert status == 0, printed
    assert all(f"ended {key} {pid}" in printed for _, key, pid in begun)
    assert (orders.stats().due, orders.stats().leased) == (6, 0)
    assert "orders: stopped, 2 handled, 0 failed" in printed


def test_processes_do_not_outlive_their_parent(url: str, orders: Queue[Any]) -> None:
    orders.offer_batch([Message(str(n), n) for n in range(4)])
    with Worker("hang", url, *ONE_EACH, "--grace", "0") as worker:
        worker.await_lines("begun", 2)
        worker.send(SIGKILL)
        worker.end()
    assert (orders.stats().due, orders.stats().leased) == (4, 0)

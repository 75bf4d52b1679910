"""`duequeue worker` at work, and how it stops."""

from pathlib import Path
from signal import SIGINT, SIGTERM
from time import monotonic
from typing import Any

import pytest

from duequeue import Message, Outcome, Queue
from duequeue.contract.phrases import SECOND
from duequeue.contract.stage import until
from duequeue.message import State
from tests.cli.command import Worker


@pytest.mark.parametrize("url", ["sqlite", "postgres", "http"], indirect=True)
@pytest.mark.parametrize("handler", ["tell", "tell_async"])
def test_messages_are_handled_until_told_to_stop(
    url: str, orders: Queue[Any], handler: str
) -> None:
    orders.offer("a", {"total": 40})
    with Worker(handler, url) as worker:
        assert worker.await_lines("handled") == [["handled", "a", "{'total':", "40}"]]
        orders.offer("b", 1, SECOND / 10)
        worker.await_lines("handled b")
        worker.send(SIGTERM)
        status, printed = worker.end()
    assert status == 0, printed
    assert "orders: stopped, 2 handled, 0 failed" in printed
    assert orders.stats().total == 0


@pytest.mark.parametrize("handler", ["tell", "tell_async"])
def test_a_worker_may_leave_a_history(url: str, orders: Queue[Any], handler: str) -> None:
    orders.offer("a", 1)
    with Worker(handler, url, "--history") as worker:
        worker.await_lines("handled a")
        worker.send(SIGTERM)
        status, printed = worker.end()
    assert status == 0, printed
    assert [(one.key, one.outcome) for one in orders.history()] == [("a", Outcome.ACKED)]


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
@pytest.mark.parametrize("handler", ["wait", "wait_async"])
def test_the_first_signal_lets_handlers_finish_and_gives_the_rest_back(
    url: str, orders: Queue[Any], fifo: Path, handler: str, number: Any
) -> None:
    orders.offer_batch([Message(str(n), str(fifo)) for n in range(10)])
    with Worker(handler, url, "--concurrency", "1", "--batch", "5") as worker:
        worker.await_lines("begun 0")
        worker.send(number)
        until(lambda: orders.stats().leased == 1)
        fifo.write_text("go")
        status, printed = worker.end()
    assert status == 0, printed
    assert "ended 0" in printed
    assert "begun 1" not in printed
    stats = orders.stats()
    assert (stats.due, stats.leased) == (9, 0)
    first = orders.read("1")
    assert first is not None
    assert (first.state, first.attempts) == (State.DUE, 0)


@pytest.mark.parametrize("handler", ["hang", "hang_async"])
def test_a_second_signal_stops_at_once(url: str, orders: Queue[Any], handler: str) -> None:
    orders.offer_batch([Message(str(n), n) for n in range(10)])
    with Worker(handler, url, "--concurrency", "1", "--batch", "5") as worker:
        worker.await_lines("begun 0")
        worker.send(SIGTERM)
        worker.send(SIGINT)
        status, printed = worker.end()
    assert status == 0, printed
    assert (orders.stats().due, orders.stats().leased) == (10, 0)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_even_a_handler_that_blocks_the_loop_cannot_keep_a_worker_from_stopping(
    url: str, orders: Queue[Any]
) -> None:
    orders.offer("a", 1)
    with Worker("block_the_loop", url) as worker:
        worker.await_lines("begun a")
        worker.send(SIGTERM)
        worker.send(SIGINT)
        status, printed = worker.end()
    assert status == 1
    assert "a handler cannot be stopped" in printed


@pytest.mark.parametrize("handler", ["hang", "hang_async"])
def test_no_handler_outlives_the_grace(url: str, orders: Queue[Any], handler: str) -> None:
    orders.offer("a", 1)
    with Worker(handler, url, "--grace", "0.1") as worker:
        worker.await_lines("begun a")
        worker.send(SIGTERM)
        status, printed = worker.end()
    assert status == 0, printed
    assert (orders.stats().due, orders.stats().leased) == (1, 0)


def test_what_fails_too_often_is_buried(url: str, orders: Queue[Any]) -> None:
    orders.offer("a", 1)
    with Worker("fail", url, "--max-attempts", "1") as worker:
        until(lambda: orders.stats().buried == 1)
        worker.send(SIGTERM)
        status, printed = worker.end()
    assert status == 0
    assert "LookupError: a" in printed
    assert "1 handled, 1 failed" in printed
    assert "LookupError" in orders.buried(1)[0].reason


@pytest.mark.parametrize(("codec", "payload"), [("text", "x"), ("bytes", b"x")])
def test_payloads_may_be_text_or_bytes(url: str, codec: str, payload: Any) -> None:
    with Queue[Any].open(url, "orders", codec=type(payload)) as queue:
        queue.offer("a", payload)
        with Worker("tell", url, "--codec", codec) as worker:
            assert worker.await_lines("handled") == [["handled", "a", repr(payload)]]
            worker.send(SIGTERM)
            assert worker.end()[0] == 0


@pytest.mark.parametrize("handler", ["tell", "tell_async"])
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_that_waits_for_its_database_hears_a_signal(handler: str, processes: str) -> None:
    with Worker(handler, "postgresql://127.0.0.1:1/app", "--processes", processes) as worker:
        worker.await_lines("consuming orders at 127.0.0.1:1/app")
        began = monotonic()
        worker.send(SIGTERM)
        status, printed = worker.end()
    assert status == 0, printed
    assert "orders: stopped, 0 handled, 0 failed" in printed
    assert monotonic() - began < 20, "it would have waited for 30 s"

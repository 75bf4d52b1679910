"""Ctrl-C passes straight through, and leaves nothing half done."""

import signal
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any

import psycopg
import pytest

from duequeue import OfferOutcome
from duequeue.contract.faces import QueueFace
from duequeue.contract.phrases import DAY, snapshot
from tests.race.crew import Hand
from tests.race.interrupting import (
    interrupt_by_alarm,
    interrupt_by_keyboard,
    interrupt_everywhere,
)
from tests.race.parts import TellingPolicy, interrupted, offer_one, offer_twice, poll_for_ever
from tests.race.watching import LEFT_IN_TRANSACTION, WAITING_FOR_A_LOCK, until_one

CREATED = OfferOutcome.CREATED

AT_ONCE = 10.0  # seconds; of which SQLite itself may hold on to a call for one

on_sqlite = pytest.mark.parametrize("store", ["sqlite"], indirect=True)
on_postgres = pytest.mark.parametrize("store", ["postgres"], indirect=True)


def interrupt(hand: Hand) -> None:
    """Interrupt, and see that the call does not take long to end."""
    began = monotonic()
    hand.interrupt()
    assert hand.heard() == "interrupted"
    assert monotonic() - began < AT_ONCE


def nothing_left_open(watch: psycopg.Connection) -> bool:
    return watch.execute(LEFT_IN_TRANSACTION).fetchone() == (0,)


@on_postgres
@pytest.mark.parametrize("action", [offer_one, offer_twice])
def test_interrupted_in_a_statement(
    bystander: QueueFace,
    store_url: str,
    lock: psycopg.Connection,
    watch: psycopg.Connection,
    hand: Hand,
    action: Callable[[QueueFace], None],
) -> None:
    hand.start(partial(interrupted, store_url, action, {}))
    assert hand.heard() == "acting"
    until_one(watch, WAITING_FOR_A_LOCK)
    interrupt(hand)
    assert hand.outcome().value is CREATED  # while the row is still locked
    assert nothing_left_open(watch)
    lock.rollback()
    assert snapshot(bystander, "a").payload == 1
    assert not bystander.contains("b")


@on_sqlite
@pytest.mark.parametrize("action", [offer_one, offer_twice])
def test_interrupted_while_the_file_is_busy(
    bystander: QueueFace,
    store_url: str,
    writer: sqlite3.Connection,
    hand: Hand,
    action: Callable[[QueueFace], None],
) -> None:
    hand.start(partial(interrupted, store_url, action, {}))
    assert hand.heard() == "acting"
    interrupt(hand)
    writer.rollback()
    assert hand.outcome().value is CREATED
    assert snapshot(bystander, "a").payload == 1


def test_interrupted_in_a_poll(store_url: str, hand: Hand) -> None:
    hand.start(partial(interrupted, store_url, poll_for_ever, {"poll_interval": DAY}))
    assert hand.heard() == "acting"
    interrupt(hand)
    assert hand.outcome().value is CREATED


@on_postgres
def test_interrupted_between_two_tries(
    bystander: QueueFace, store_url: str, lock: psycopg.Connection, hand: Hand
) -> None:
    impatient = f"{store_url}?options=-c%20lock_timeout%3D1ms"
    hand.start(partial(interrupted, impatient, offer_one, {"retry": TellingPolicy()}))
    assert [hand.heard(), hand.heard()] == ["acting", "pausing"]
    interrupt(hand)
    assert hand.outcome().value is CREATED


@on_postgres
def test_interrupted_before_the_answer(
    bystander: QueueFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C reaches Python code after a statement was sent, and before its answer is awaited."""
    execute = psycopg.Cursor.execute

    def interrupted_execute(cursor: Any, query: Any, *rest: Any, **options: Any) -> Any:
        if "INSERT INTO duequeue_message" not in str(query):
            return execute(cursor, query, *rest, **options)
        cursor.connection.pgconn.send_query(b"SELECT 1")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", interrupted_execute)
        with pytest.raises(KeyboardInterrupt):
            bystander.offer("a", 2)
    assert bystander.offer("a", 3) is OfferOutcome.UPDATED


class TimeUp(Exception):
    """The exception of a signal handler that is not Ctrl-C."""


@on_postgres
@pytest.mark.usefixtures("lock")
@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals need the main thread"
)
def test_a_time_limit_ends_a_batch_of_two_statements(
    bystander: QueueFace, watch: psycopg.Connection
) -> None:
    """The driver sends both at once, and must not replace the interrupt by an error of its own."""

    def strike(*_: object) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGALRM, strike)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(TimeUp):
            offer_twice(bystander)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert nothing_left_open(watch)
    assert bystander.offer("afterwards", 1) is CREATED


@pytest.mark.parametrize("store", ["postgres", "redis"], indirect=True)
@pytest.mark.parametrize(
    "interrupt",
    [
        interrupt_everywhere,
        partial(interrupt_by_alarm, interrupts=300),
        partial(interrupt_by_keyboard, interrupts=300),
    ],
    ids=["everywhere", "by alarm", "by keyboard"],
)
def test_no_interrupt_costs_a_connection(
    store_url: str, hand: Hand, interrupt: Callable[[str], int]
) -> None:
    """With two connections, of which offers may use one, the first that is lost would be missed."""
    hand.start(partial(interrupt, f"{store_url}?pool_size=2"))
    outcome = hand.outcome()
    assert outcome.error is None, outcome.error
    assert outcome.value > 100

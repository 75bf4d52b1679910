"""What a refresh costs: one indexed read when there is nothing to do."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from math import inf
from typing import Any, TypeVar

import psycopg
import pytest

from duequeue import Crontab, Daily, ManualClock, Misfire, Queue
from duequeue.backends import backend_for
from duequeue.contract.phrases import DAY, HOUR, MINUTE
from duequeue.drive.actions import performer
from duequeue.drive.steps import drive
from duequeue.flows import opening
from duequeue.port.store import Operation, Session
from duequeue.stores.sql.postgres.statements import queries

T = TypeVar("T")

on_databases = pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)


class CountingSession:
    """Notes the name of every command that passes through it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.commands: list[str] = []

    def run(self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False) -> T:
        return self._session.run(lambda: self._counted(operation), seconds, consumes=consumes)

    def close(self) -> None:
        self._session.close()

    def _counted(self, operation: Operation[T]) -> Generator[Any, Any, T]:
        steps = operation()
        reply = None
        while True:
            try:
                command = steps.send(reply)
            except StopIteration as done:
                result: T = done.value
                return result
            self.commands.append(getattr(command, "name", "begin"))
            reply = yield command


@contextmanager
def counted_queue(url: str, clock: ManualClock) -> Iterator[tuple[Queue[Any], list[str]]]:
    backend = backend_for(url)
    session = CountingSession(backend.session())
    checked = opening.checked(backend, "orders", lease=MINUTE, poll_interval=HOUR, clock=clock)
    context = drive(checked.flow(session), performer(session))
    with Queue(backend, context, session) as queue:
        yield queue, session.commands


@on_databases
def test_an_idle_refresh_is_one_indexed_read(store_url: str, clock: ManualClock) -> None:
    with counted_queue(store_url, clock) as (queue, commands):
        handles = [
            queue.cron.install_periodic_tick("a", HOUR, 1, misfire=Misfire.fire_all(5)),
            queue.cron.install_daily_schedule("b", Daily(["07:00", "18:00"], horizon=30 * DAY), 1),
            queue.cron.install_expression("c", Crontab("0 0 29 2 *"), 1),
        ]
        for handle in handles:
            commands.clear()
            handle.refresh()
            assert commands == ["look_at_cron"]
        queue.cron.pause("a")
        commands.clear()
        handles[0].refresh()
        assert commands == ["look_at_cron"]


@on_databases
def test_a_busy_refresh_is_one_transaction_of_a_few_statements(
    store_url: str, clock: ManualClock
) -> None:
    with counted_queue(store_url, clock) as (queue, commands):
        handle = queue.cron.install_periodic_tick("a", timedelta(days=400), 1)
        commands.clear()
        clock.advance(timedelta(days=400))
        handle.refresh()
        busy = commands[: commands.index("save_cron") + 1]
        assert busy[-7:] == [
            "begin",
            "lock_cron",
            "recall_ticks",
            "offer_messages",
            "remember_ticks",
            "forget_ticks",
            "save_cron",
        ]


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_the_read_uses_the_indexes(store_url: str, clock: ManualClock) -> None:
    with (
        counted_queue(store_url, clock) as (queue, _),
        psycopg.connect(store_url, autocommit=True) as connection,
    ):
        for number in range(200):
            queue.cron.install_periodic_tick(f"cron-{number}", timedelta(hours=1), 1).close()
        connection.execute("ANALYZE duequeue_cron; ANALYZE duequeue_tick")
        look = {"kind_id": 1, "prefix": "cron-7", "config_hash": "x", "since": 1}
        plan = connection.execute(b"EXPLAIN " + queries()["look_at_cron"], look).fetchall()
        assert not any("Seq Scan" in line for (line,) in plan)

"""What the other processes do with crons: calls that can be pickled."""

import logging
import os
import signal
from collections.abc import Generator
from datetime import datetime, timedelta
from math import inf
from typing import Any, NamedTuple, TypeVar

from duequeue import ManualClock, Queue
from duequeue.backends import backend_for
from duequeue.contract.cron_phrases import run_everything_due
from duequeue.contract.faces import CronHandleFace, QueueFace, SyncFace
from duequeue.contract.fixtures import START
from duequeue.drive.actions import performer
from duequeue.drive.steps import drive
from duequeue.flows import opening
from duequeue.port.store import Operation, Session
from tests.race.parts import open_queue

T = TypeVar("T")

STEP = timedelta(seconds=20)
PERIOD = timedelta(minutes=1)


def be_a_node(url: str, begins_at: datetime, ends_at: datetime) -> list[str]:
    """Install the cron, let time pass at this process's own pace, and handle what is due."""
    clock = ManualClock(begins_at)
    ran: list[str] = []
    # No clock gets so far ahead of another that it sees the other's leases run out.
    with SyncFace().open(url, "orders", clock=clock, lease=timedelta(days=1)) as queue:
        handle = queue.cron.install_periodic_tick("reports", PERIOD, "hello")
        while clock.now() < ends_at:
            clock.advance(STEP)
            handle.refresh()
            ran += run_everything_due(queue)
    return ran


class Held(NamedTuple):
    """What a process keeps from one call to the next."""

    queue: QueueFace
    handle: CronHandleFace
    log: list[str]


class Listener(logging.Handler):
    """Remembers what was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


_held: list[Held] = []


def install_and_keep(url: str, minutes: int) -> None:
    """Install a cron that outlives the call."""
    handler = Listener()
    logging.getLogger("duequeue.cron").handlers = [handler]
    queue = open_queue(url)
    handle = queue.cron.install_periodic_tick("reports", timedelta(minutes=minutes), minutes)
    _held.append(Held(queue, handle, handler.lines))


def refresh_twice_and_let_go() -> tuple[bool, list[str]]:
    """Refresh what is kept; return whether it still runs, and what it logged."""
    held = _held.pop()
    held.handle.refresh()
    active = held.handle.active
    held.handle.refresh()
    held.queue.close()
    return active, held.log


class MortalSession:
    """Has its process killed after so many commands."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.commands_left: int | None = None

    def run(self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False) -> T:
        return self._session.run(lambda: self._numbered(operation), seconds, consumes=consumes)

    def close(self) -> None:
        self._session.close()

    def _numbered(self, operation: Operation[T]) -> Generator[Any, Any, T]:
        steps = operation()
        reply = None
        while True:
            try:
                command = steps.send(reply)
            except StopIteration as done:
                result: T = done.value
                return result
            reply = yield command
            if self.commands_left is not None:
                self.commands_left -= 1
                if self.commands_left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)


def install_and_die(url: str, prefix: str, commands: int) -> str:
    """Install a cron, and die after so many commands; or tell that there were not so many."""
    backend = backend_for(url)
    session = MortalSession(backend.session())
    checked = opening.checked(
        backend,
        "orders",
        lease=PERIOD,
        poll_interval=PERIOD,
        clock=ManualClock(START),
    )
    context = drive(checked.flow(session), performer(session))
    with Queue(backend, context, session) as queue:
        session.commands_left = commands
        queue.cron.install_periodic_tick(prefix, PERIOD, "hello")
    return "survived"

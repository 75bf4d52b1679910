"""Several processes that work: the parent starts them, replaces the dead, passes orders on."""

import multiprocessing
import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from time import monotonic
from typing import Any

from duequeue.backoff import Backoff
from duequeue.cli.handler_path import load
from duequeue.cli.orders import (
    FromParent,
    Order,
    Signals,
    holding_signals_back,
    listening_to_signals,
)
from duequeue.cli.terminal import Terminal
from duequeue.cli.worker.alone import PATIENCE_SECONDS, REPORT_SECONDS, serve
from duequeue.cli.worker.beginning import begin
from duequeue.cli.worker.settings import WorkerSettings
from duequeue.cli.worker.status import Status
from duequeue.cli.worker.tally import Tally
from duequeue.connect import backend_for
from duequeue.errors import DueQueueError
from duequeue.queue import Queue

# A process that lives shorter than this is replaced ever later.
SHORT_LIFE_SECONDS = 10.0
PAUSES = Backoff(first=timedelta(milliseconds=100), longest=timedelta(seconds=30))

_spawn = multiprocessing.get_context("spawn")


def work_together(settings: WorkerSettings, processes: int) -> int:
    """Serve in several processes, with one status line."""
    load(settings.handler)
    terminal = Terminal()
    with listening_to_signals() as signals, terminal.shared():
        address = backend_for(settings.url).address
        terminal.print(f"{settings.queue} at {address}, {processes} processes")
        status = Status(settings.queue, terminal)
        # What is wrong with the database is told once, here; and its tables are made once.
        _, order = begin(partial(_open_once, settings), signals)
        if order is not None:
            status.finish(Tally())
            return 0
        crew = Crew(settings, processes)
        while not crew.finished:
            status.update(crew.tally())
            crew.tend(signals)
        status.finish(crew.tally())
    return crew.exit_status


def _open_once(settings: WorkerSettings) -> None:
    Queue.open(settings.url, settings.queue, **settings.opening()).close()


@dataclass
class Member:
    """One process, and what it last reported."""

    process: SpawnProcess
    line: "Connection[Any, Any]"
    began: float
    tally: Tally = field(default_factory=Tally)


class Crew:
    """The processes of one worker."""

    def __init__(self, settings: WorkerSettings, size: int) -> None:
        self._settings = settings
        self._members: list[Member] = []
        self._gone = Tally()
        self._short_lives = 0
        self._starts_at = [monotonic()] * size
        self._order: Order | None = None
        self._kills_at = float("inf")
        self.exit_status = 0

    @property
    def finished(self) -> bool:
        """Whether everybody has stopped as ordered."""
        return self._order is not None and not self._members

    def tally(self) -> Tally:
        """Return what all have done, the dead included."""
        return sum((member.tally for member in self._members), self._gone)

    def tend(self, signals: Signals) -> None:
        """Wait for something to happen, and see to it."""
        self._start_those_due()
        sentinels = {member.process.sentinel: member for member in self._members}
        lines = {member.line: member for member in self._members}
        ready = wait([signals.incoming, *lines, *sentinels], REPORT_SECONDS)
        for source in ready:
            if source is signals.incoming:
                self._pass_on(signals.take())
            elif source in lines:
                _hear(lines[source])
        for source in ready:
            if source in sentinels:
                self._bid_farewell(sentinels[source])
        if monotonic() > self._kills_at:
            for member in self._members:
                member.process.kill()

    def _start_those_due(self) -> None:
        due = [at for at in self._starts_at if at <= monotonic()]
        for at in due:
            self._starts_at.remove(at)
            self._members.append(_begin(self._settings))

    def _pass_on(self, order: Order) -> None:
        self._order = order
        self._starts_at.clear()
        if order is Order.STOP_NOW:
            self._kills_at = monotonic() + 2 * PATIENCE_SECONDS
        for member in self._members:
            _send(member, order)

    def _bid_farewell(self, member: Member) -> None:
        _hear(member)
        member.process.join()
        member.line.close()
        self._members.remove(member)
        self._gone += replace(member.tally, in_hand=0)
        code, pid = member.process.exitcode, member.process.pid
        if self._order is not None:
            self.exit_status = self.exit_status or int(code != 0)
            return
        lived = monotonic() - member.began
        self._short_lives = self._short_lives + 1 if lived < SHORT_LIFE_SECONDS else 0
        pause = PAUSES.delay(self._short_lives) if self._short_lives else timedelta(0)
        self._starts_at.append(monotonic() + pause.total_seconds())
        print(f"duequeue: process {pid} ended with {code}; another takes over", file=sys.stderr)


def _begin(settings: WorkerSettings) -> Member:
    ours, theirs = _spawn.Pipe()
    process = _spawn.Process(target=_work, args=(settings, theirs))
    with holding_signals_back():
        process.start()
    theirs.close()
    return Member(process, ours, monotonic())


def _hear(member: Member) -> None:
    """Take in what a member has reported so far."""
    with suppress(EOFError, OSError):  # it has died, which its sentinel tells
        while member.line.poll():
            member.tally = member.line.recv()


def _send(member: Member, order: Order) -> None:
    with suppress(OSError):  # likewise
        member.line.send(order)


def _work(settings: WorkerSettings, parent: "Connection[Any, Any]") -> None:
    """Be one of the processes."""

    def report(tally: Tally) -> None:
        with suppress(OSError):  # the orders tell that the parent is gone
            parent.send(tally)

    terminal = Terminal()
    with listening_to_signals() as signals, terminal.shared():
        try:
            orders = FromParent(signals, parent)
            last = serve(settings, load(settings.handler), orders, report)
        except (DueQueueError, ValueError) as error:
            sys.exit(f"duequeue: {error}")
        report(last)

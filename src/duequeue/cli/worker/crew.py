"""Several worker processes: the parent starts them, replaces dead ones, and passes signals on."""

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
from duequeue.cli.log_set_up import print_error
from duequeue.cli.stop_requests import (
    Signals,
    SignalsAndParent,
    StopRequest,
    listening_to_signals,
    signals_blocked,
)
from duequeue.cli.worker.alone import HARD_STOP_SECONDS, REPORT_SECONDS, consume, prepared
from duequeue.cli.worker.beginning import start_unless_stopped
from duequeue.cli.worker.health import STARTING, health_endpoint
from duequeue.cli.worker.services import ServedHandler, addresses, queue_names
from duequeue.cli.worker.settings import WorkerSettings
from duequeue.cli.worker.status import Status
from duequeue.cli.worker.tally import Tally, WorkerReport
from duequeue.cli.worker.terminals import terminal_of
from duequeue.errors import DueQueueError
from duequeue.opening import open_queue
from duequeue.queue import Queue

# Each process that dies younger than this makes the pause before the next start longer.
SHORT_LIFE_SECONDS = 10.0
# A process that has not reported for this long does not work.
SILENT_SECONDS = 15.0
PAUSES = Backoff(first=timedelta(milliseconds=100), longest=timedelta(seconds=30))

_spawn = multiprocessing.get_context("spawn")


def work_together(settings: WorkerSettings, services: list[ServedHandler], processes: int) -> int:
    """Consume in several processes, with one status line."""
    terminal = terminal_of(settings)
    workers: WorkerProcesses | None = None

    def problem() -> str:
        return STARTING if workers is None else workers.problem()

    with (
        listening_to_signals() as signals,
        terminal.shared(),
        health_endpoint(settings.health, problem),
    ):
        names = queue_names(services)
        terminal.print(f"consuming {names} at {addresses(services)} in {processes} processes")
        status = Status(names, terminal)
        # An error of the database is reported once, here, and the tables are created once.
        _, request = start_unless_stopped(partial(_open_once, services), signals)
        if request is not None:
            status.finish(Tally())
            return 0
        workers = WorkerProcesses(settings, processes)
        while not workers.finished:
            status.update(workers.tally())
            workers.handle_events(signals)
        status.finish(workers.tally())
    return workers.exit_status


def _open_once(services: list[ServedHandler]) -> None:
    for service in services:
        if service.queue is None:  # otherwise its module has opened it
            open_queue(service.opening, Queue).close()


@dataclass
class WorkerProcess:
    """One process, and the counts that it last reported."""

    process: SpawnProcess
    pipe: "Connection[Any, Any]"
    started_at: float
    report: WorkerReport = field(default_factory=lambda: WorkerReport(Tally(), STARTING))
    reported_at: float = field(default_factory=monotonic)


class WorkerProcesses:
    """The processes of one worker, seen from their parent."""

    def __init__(self, settings: WorkerSettings, size: int) -> None:
        self._settings = settings
        self._size = size
        self._workers: list[WorkerProcess] = []
        self._tally_of_the_dead = Tally()
        self._short_lives = 0
        self._starts_at = [monotonic()] * size
        self._request: StopRequest | None = None
        self._kills_at = float("inf")
        self.exit_status = 0

    @property
    def finished(self) -> bool:
        """Whether a stop was requested and every process has ended."""
        return self._request is not None and not self._workers

    def tally(self) -> Tally:
        """Return the counts of all processes, including the dead ones."""
        living = (worker.report.tally for worker in self._workers)
        return sum(living, self._tally_of_the_dead)

    def problem(self) -> str:
        """Return what is wrong with one of the processes, or nothing."""
        workers = list(self._workers)
        if len(workers) < self._size:
            return f"{len(workers)} of {self._size} processes run"
        for worker in workers:
            if monotonic() - worker.reported_at > SILENT_SECONDS:
                return f"process {worker.process.pid} does not answer"
        return next((each.report.problem for each in workers if each.report.problem), "")

    def handle_events(self, signals: Signals) -> None:
        """Wait a moment for signals, reports and exits, and handle those that come."""
        self._start_due()
        sentinels = {worker.process.sentinel: worker for worker in self._workers}
        pipes = {worker.pipe: worker for worker in self._workers}
        ready = wait([signals.incoming, *pipes, *sentinels], REPORT_SECONDS)
        for source in ready:
            if source is signals.incoming:
                self._pass_on(signals.take())
            elif source in pipes:
                _read_reports(pipes[source])
        for source in ready:
            if source in sentinels:
                self._handle_exit(sentinels[source])
        if monotonic() > self._kills_at:
            for worker in self._workers:
                worker.process.kill()

    def _start_due(self) -> None:
        due = [at for at in self._starts_at if at <= monotonic()]
        for at in due:
            self._starts_at.remove(at)
            self._workers.append(_start(self._settings))

    def _pass_on(self, request: StopRequest) -> None:
        self._request = request
        self._starts_at.clear()
        if request is StopRequest.STOP_NOW:
            self._kills_at = monotonic() + 2 * HARD_STOP_SECONDS
        for worker in self._workers:
            _send(worker, request)

    def _handle_exit(self, worker: WorkerProcess) -> None:
        _read_reports(worker)
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)
        self._tally_of_the_dead += replace(worker.report.tally, in_hand=0)
        code, pid = worker.process.exitcode, worker.process.pid
        if self._request is not None:
            self.exit_status = self.exit_status or int(code != 0)
            return
        lived = monotonic() - worker.started_at
        self._short_lives = self._short_lives + 1 if lived < SHORT_LIFE_SECONDS else 0
        pause = PAUSES.delay(self._short_lives) if self._short_lives else timedelta(0)
        self._starts_at.append(monotonic() + pause.total_seconds())
        print_error(f"process {pid} exited with {code} and is replaced")


def _start(settings: WorkerSettings) -> WorkerProcess:
    ours, theirs = _spawn.Pipe()
    process = _spawn.Process(target=_work, args=(settings, theirs))
    with signals_blocked():
        process.start()
    theirs.close()
    return WorkerProcess(process, ours, monotonic())


def _read_reports(worker: WorkerProcess) -> None:
    """Read the counts that a process has reported so far."""
    with suppress(EOFError, OSError):  # it has died, and its sentinel will be ready
        while worker.pipe.poll():
            worker.report = worker.pipe.recv()
            worker.reported_at = monotonic()


def _send(worker: WorkerProcess, request: StopRequest) -> None:
    with suppress(OSError):  # it has died, and its sentinel will be ready
        worker.pipe.send(request)


def _work(settings: WorkerSettings, parent: "Connection[Any, Any]") -> None:
    """Run as one of the processes."""

    def report(new: WorkerReport) -> None:
        with suppress(OSError):  # the parent is gone, which counts as a stop request
            parent.send(new)

    terminal = terminal_of(settings)
    with listening_to_signals() as signals, terminal.shared():
        try:
            requests = SignalsAndParent(signals, parent)
            last = consume(settings, prepared(settings), requests, report)
        except DueQueueError as error:
            print_error(str(error))
            sys.exit(1)
        report(WorkerReport(last))

"""A single worker process, which consumes until it is stopped, and reports its counts."""

import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from time import monotonic

from duequeue.cli.log_set_up import print_error, set_up_log
from duequeue.cli.stop_requests import StopRequest, StopRequests, listening_to_signals
from duequeue.cli.worker.beginning import start_unless_stopped
from duequeue.cli.worker.django_support import set_up_django
from duequeue.cli.worker.health import STARTING, health_endpoint, problem_of
from duequeue.cli.worker.services import ServedHandler, addresses, find_services, queue_names
from duequeue.cli.worker.serving import RunningConsumer, running_consumers
from duequeue.cli.worker.settings import WorkerSettings
from duequeue.cli.worker.status import Status
from duequeue.cli.worker.tally import Counter, Tally, WorkerReport
from duequeue.cli.worker.terminals import terminal_of
from duequeue.events.events import Event, Listener
from duequeue.events.log import log_event

REPORT_SECONDS = 0.5
STOPPING_REPORT_SECONDS = 0.05
# How long a hard stop may take to give messages back.
HARD_STOP_SECONDS = 5.0


def prepared(settings: WorkerSettings) -> list[ServedHandler]:
    """Set up the log and Django, and import the handlers."""
    set_up_log(settings.log_level, settings.log_format)
    set_up_django()
    return find_services(settings)


def work_alone(settings: WorkerSettings, services: list[ServedHandler]) -> int:
    """Consume in this process, with a status line."""
    terminal = terminal_of(settings)
    last = WorkerReport(Tally(), STARTING)

    def report(new: WorkerReport) -> None:
        nonlocal last
        last = new
        status.update(new.tally)

    with (
        listening_to_signals() as signals,
        terminal.shared(),
        health_endpoint(settings.health, lambda: last.problem),
    ):
        names = queue_names(services)
        terminal.print(f"consuming {names} at {addresses(services)}")
        status = Status(names, terminal)
        status.finish(consume(settings, services, signals, report))
    return 0


def consume(
    settings: WorkerSettings,
    services: list[ServedHandler],
    requests: StopRequests,
    report: Callable[[WorkerReport], None],
) -> Tally:
    """Consume until asked to stop, and return the final counts."""
    counter = Counter()
    listener = _also_logging(counter) if settings.log_events else counter
    with ExitStack() as started:
        consumers, request = start_unless_stopped(
            lambda: started.enter_context(running_consumers(services, listener)), requests
        )
        if consumers is not None:

            def report_now() -> None:
                tally = counter.tally(consumers.in_hand)
                report(WorkerReport(tally, problem_of(consumers, services)))

            _run_until_stopped(consumers, requests, request, settings.grace, report_now)
    return counter.tally(0)


def _also_logging(listener: Listener) -> Listener:
    def listen(event: Event) -> None:
        listener(event)
        log_event(event, handled=logging.INFO)

    return listen


def _run_until_stopped(
    consumer: RunningConsumer,
    requests: StopRequests,
    request: StopRequest | None,
    grace: timedelta,
    report: Callable[[], None],
) -> None:
    while request is None:
        report()
        request = requests.await_request(REPORT_SECONDS)
    stopping = _stop(consumer, grace if request is StopRequest.STOP else timedelta(0))
    gives_up_at = float("inf")
    while stopping.is_alive():
        report()
        if requests.await_request(STOPPING_REPORT_SECONDS) is StopRequest.STOP_NOW:
            _stop(consumer, timedelta(0))
            gives_up_at = monotonic() + HARD_STOP_SECONDS
        if monotonic() > gives_up_at:
            _exit_now()


def _stop(consumer: RunningConsumer, grace: timedelta) -> threading.Thread:
    """Stop on another thread, because a second request may come meanwhile."""
    stopping = threading.Thread(target=consumer.stop, args=(grace,), daemon=True)
    stopping.start()
    return stopping


def _exit_now() -> None:
    """End a process whose handlers keep it from stopping."""
    print_error("a handler cannot be stopped, so its messages wait for their leases to end")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)

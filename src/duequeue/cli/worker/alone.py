"""A single worker process, which consumes until it is stopped, and reports its counts."""

import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from time import monotonic
from typing import Any

from duequeue.backends import backend_for
from duequeue.cli.handler_path import load
from duequeue.cli.stop_requests import StopRequest, StopRequests, listening_to_signals
from duequeue.cli.terminal import Terminal
from duequeue.cli.worker.beginning import start_unless_stopped
from duequeue.cli.worker.serving import RunningConsumer, running_consumer
from duequeue.cli.worker.settings import WorkerSettings
from duequeue.cli.worker.status import Status
from duequeue.cli.worker.tally import Counter, Tally

REPORT_SECONDS = 0.5
STOPPING_REPORT_SECONDS = 0.05
# How long a hard stop may take to give messages back.
HARD_STOP_SECONDS = 5.0


def work_alone(settings: WorkerSettings) -> int:
    """Consume in this process, with a status line."""
    handler = load(settings.handler)
    terminal = Terminal()
    with listening_to_signals() as signals, terminal.shared():
        terminal.print(f"consuming {settings.queue} at {backend_for(settings.url).address}")
        status = Status(settings.queue, terminal)
        status.finish(consume(settings, handler, signals, status.update))
    return 0


def consume(
    settings: WorkerSettings,
    handler: Callable[..., Any],
    requests: StopRequests,
    report: Callable[[Tally], None],
) -> Tally:
    """Consume until asked to stop, and return the final counts."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    counter = Counter()
    with ExitStack() as started:
        consumer, request = start_unless_stopped(
            lambda: started.enter_context(running_consumer(settings, handler, counter)), requests
        )
        if consumer is not None:
            reporter = _reporter(report, counter, consumer)
            _run_until_stopped(consumer, requests, request, settings.grace, reporter)
    return counter.tally(0)


def _reporter(
    report: Callable[[Tally], None], counter: Counter, consumer: RunningConsumer
) -> Callable[[], None]:
    return lambda: report(counter.tally(consumer.in_hand))


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
    print("duequeue: a handler cannot be stopped, so its messages wait for their leases to end")
    sys.stdout.flush()
    os._exit(1)

"""One process that works: it serves until it is told to stop, and reports meanwhile."""

import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from time import monotonic
from typing import Any

from duequeue.cli.handler_path import load
from duequeue.cli.orders import Order, Orders, listening_to_signals
from duequeue.cli.terminal import Terminal
from duequeue.cli.worker.beginning import begin
from duequeue.cli.worker.serving import Serving, serving
from duequeue.cli.worker.settings import WorkerSettings
from duequeue.cli.worker.status import Status
from duequeue.cli.worker.tally import Counter, Tally
from duequeue.connect import backend_for

REPORT_SECONDS = 0.5
STOPPING_REPORT_SECONDS = 0.05
# How long a hard stop may take to give messages back.
PATIENCE_SECONDS = 5.0


def work_alone(settings: WorkerSettings) -> int:
    """Serve in this process, with a status line."""
    handler = load(settings.handler)
    terminal = Terminal()
    with listening_to_signals() as signals, terminal.shared():
        terminal.print(f"{settings.queue} at {backend_for(settings.url).address}")
        status = Status(settings.queue, terminal)
        status.finish(serve(settings, handler, signals, status.update))
    return 0


def serve(
    settings: WorkerSettings,
    handler: Callable[..., Any],
    orders: Orders,
    report: Callable[[Tally], None],
) -> Tally:
    """Serve until ordered to stop, and return what was done."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    counter = Counter()
    with ExitStack() as begun:
        served, order = begin(
            lambda: begun.enter_context(serving(settings, handler, counter)), orders
        )
        if served is not None:
            _attend(served, orders, order, settings.grace, _reporter(report, counter, served))
    return counter.tally(0)


def _reporter(
    report: Callable[[Tally], None], counter: Counter, served: Serving
) -> Callable[[], None]:
    return lambda: report(counter.tally(served.in_hand))


def _attend(
    served: Serving,
    orders: Orders,
    order: Order | None,
    grace: timedelta,
    report: Callable[[], None],
) -> None:
    while order is None:
        report()
        order = orders.await_order(REPORT_SECONDS)
    stopping = _stop(served, grace if order is Order.STOP else timedelta(0))
    gives_up_at = float("inf")
    while stopping.is_alive():
        report()
        if orders.await_order(STOPPING_REPORT_SECONDS) is Order.STOP_NOW:
            _stop(served, timedelta(0))
            gives_up_at = monotonic() + PATIENCE_SECONDS
        if monotonic() > gives_up_at:
            _leave()


def _stop(served: Serving, grace: timedelta) -> threading.Thread:
    """Stop on another thread, for a second order may come meanwhile."""
    stopping = threading.Thread(target=served.stop, args=(grace,), daemon=True)
    stopping.start()
    return stopping


def _leave() -> None:
    """End a process whose handlers block even its end."""
    print("duequeue: a handler cannot be stopped; what is in hand waits for its lease to end")
    sys.stdout.flush()
    os._exit(1)

"""How a worker starts: it may have to wait for its database, and can be stopped while it waits."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from duequeue.cli.stop_requests import StopRequest, StopRequests

T = TypeVar("T")

LISTENING_SECONDS = 0.02
# After a stop request, a start that is nearly done still gets this long.
LAST_SECONDS = 1.0


def start_unless_stopped(
    start: Callable[[], T], requests: StopRequests
) -> tuple[T | None, StopRequest | None]:
    """Call `start`, which may block, and return its result, a stop request, or both.

    It runs on another thread; if it still waits after a request, it ends with the process.
    """
    started: Future[T] = Future()

    def run() -> None:
        try:
            started.set_result(start())
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it again
            started.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    while not started.done():
        if (request := requests.await_request(LISTENING_SECONDS)) is not None:
            with suppress(TimeoutError):
                return started.result(LAST_SECONDS), request
            return None, request
    return started.result(), None

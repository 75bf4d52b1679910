"""A worker that waits for its database can be told to stop."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from duequeue.cli.orders import Order, Orders

T = TypeVar("T")

LISTENING_SECONDS = 0.02
# After an order there is still time for what was as good as done.
LAST_SECONDS = 1.0


def begin(beginning: Callable[[], T], orders: Orders) -> tuple[T | None, Order | None]:
    """Call what may have to wait, and listen meanwhile: return its result, or an order, or both.

    It runs on another thread; what still waits after an order ends with the process.
    """
    begun: Future[T] = Future()

    def run() -> None:
        try:
            begun.set_result(beginning())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            begun.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    while not begun.done():
        if (order := orders.await_order(LISTENING_SECONDS)) is not None:
            with suppress(TimeoutError):
                return begun.result(LAST_SECONDS), order
            return None, order
    return begun.result(), None

"""SIGTERM and SIGINT, handled differently for the length of a block."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def answered_by(answer: Callable[[], None]) -> Iterator[None]:
    """Call `answer` on the main thread for each of these signals."""

    def on_signal(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a signal handler
        answer()

    before = {number: signal.signal(number, on_signal) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def answered_in_the_loop_by(answer: Callable[[], None]) -> Iterator[None]:
    """Call `answer` in the running event loop for each of these signals."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, answer)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)

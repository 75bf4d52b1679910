"""SIGTERM and SIGINT, handled differently for the length of a block."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

# What the blocks of each event loop want called, and the signal handlers before the first of them.
_answers: "WeakKeyDictionary[asyncio.AbstractEventLoop, list[Callable[[], None]]]" = (
    WeakKeyDictionary()
)
_before: "WeakKeyDictionary[asyncio.AbstractEventLoop, dict[signal.Signals, Any]]" = (
    WeakKeyDictionary()
)


@contextmanager
def answered_by(answer: Callable[[], None]) -> Iterator[None]:
    """Call `answer` on the main thread for each of these signals."""
    _check_main_thread()

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
    """Call `answer` in the running event loop for each of these signals.

    Blocks that run at the same time in one loop are all answered.
    """
    _check_main_thread()
    loop = asyncio.get_running_loop()
    answers = _answers.setdefault(loop, [])
    answers.append(answer)
    if len(answers) == 1:
        before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
        _before[loop] = before
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, _call_all, answers)
    try:
        yield
    finally:
        answers.remove(answer)
        if not answers:
            for number, handler in _before.pop(loop).items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)


def _call_all(answers: list[Callable[[], None]]) -> None:
    for answer in list(answers):
        answer()


def _check_main_thread() -> None:
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(
            "run handles signals, so it must be called on the main thread; on another thread, use "
            "the consumer in a `with` block and call its stop() yourself"
        )

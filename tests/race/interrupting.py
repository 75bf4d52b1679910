"""Interrupts at every moment of a call: wherever Python lets one strike, and by real signals."""

import dis
import random
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Self

from duequeue import Queue, RetryPolicy
from duequeue.contract.phrases import SECOND
from duequeue.stores import redis
from duequeue.stores.sql import connections, mariadb, postgres

PACKAGES = tuple(
    str(Path(str(store.__file__)).parent) for store in (connections, postgres, mariadb, redis)
)
# After these instructions, Python lets a signal handler run, whose exception then strikes.
INTERRUPTIBLE = ("CALL", "RESUME", "JUMP_BACKWARD")
IMPATIENT = RetryPolicy(budget=3 * SECOND)


class TimeIsUp(BaseException):
    """The exception of a signal handler.

    It is not an `Exception`, because the driver catches those in some places while it connects, and
    then raises an error of its own instead.
    """


class Interrupter:
    """Raises once, at the moment of that number in the code of these packages."""

    def __init__(self, number: int, packages: tuple[str, ...] = PACKAGES) -> None:
        self._left = number
        self._packages = packages
        self._last: dict[FrameType, int | None] = {}
        self.struck = False

    def __enter__(self) -> Self:
        # Python 3.12 reports single instructions only if a frame has asked for them before.
        sys._getframe().f_trace_opcodes = True  # noqa: SLF001
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        self._last.clear()

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if self.struck or not frame.f_code.co_filename.startswith(self._packages):
            return None
        frame.f_trace_opcodes = True
        if event == "exception":  # what handles it begins without an interrupt
            self._last[frame] = None
        if event == "opcode":
            last, self._last[frame] = self._last.get(frame), frame.f_lasti
            if last is not None and _names(frame.f_code)[last].startswith(INTERRUPTIBLE):
                self._strike()
        return self._trace

    def _strike(self) -> None:
        self._left -= 1
        if self._left < 0:
            self.struck = True
            self._last.clear()
            raise TimeIsUp


@cache
def _names(code: CodeType) -> dict[int, str]:
    return {each.offset: each.opname for each in dis.get_instructions(code)}


def interrupt_everywhere(url: str) -> int:
    """Make the same calls again and again, each time interrupted a moment later; count them."""
    with Queue[int].open(url, "orders", retry=IMPATIENT) as queue:
        for number in range(10_000):
            with Interrupter(number) as interrupter, suppress(TimeIsUp):
                offer_poll_ack(queue, number)
            if not interrupter.struck:
                return number
    raise AssertionError("the calls never end")


def interrupt_by_alarm(url: str, interrupts: int) -> int:
    """Make calls under a time limit that is mostly too short, until enough were interrupted."""
    signal.signal(signal.SIGALRM, _time_is_up)
    with Queue[int].open(url, "orders", retry=IMPATIENT) as queue:
        return _call_until(interrupts, lambda number: _within_alarm(queue, number))


def interrupt_by_keyboard(url: str, interrupts: int) -> int:
    """Make calls while somebody presses Ctrl-C, until enough were interrupted."""
    signal.signal(signal.SIGALRM, _press)
    with Queue[int].open(url, "orders", retry=IMPATIENT) as queue:
        return _call_until(interrupts, lambda number: _within_alarm(queue, number))


def offer_poll_ack(queue: Queue[int], number: int) -> None:
    queue.offer(f"key-{number % 50}", number)
    delivery = queue.try_poll()
    if delivery is not None:
        delivery.ack()


def _call_until(interrupts: int, call: Callable[[int], None]) -> int:
    seen = 0
    for number in count(1):
        try:
            call(number)
        except (TimeIsUp, KeyboardInterrupt):
            seen += 1
        if seen == interrupts:
            break
    return seen


class Alarm:
    """Whether an alarm may interrupt; a lock could be interrupted itself."""

    may_strike = False


def _within_alarm(queue: Queue[int], number: int) -> None:
    Alarm.may_strike = True
    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0002, 0.006))  # noqa: S311 - no secret
    offer_poll_ack(queue, number)
    Alarm.may_strike = False  # one that comes now would strike where nobody expects it
    signal.setitimer(signal.ITIMER_REAL, 0)


def _time_is_up(*_: Any) -> None:
    if Alarm.may_strike:
        raise TimeIsUp


def _press(*_: Any) -> None:
    if Alarm.may_strike:
        signal.raise_signal(signal.SIGINT)

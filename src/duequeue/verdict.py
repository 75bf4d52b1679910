"""What becomes of a message after its handler: a pure decision."""

import traceback
from datetime import timedelta
from typing import NamedTuple, TypeAlias

from duequeue.backoff import Backoff
from duequeue.instants import span_to_millis


class Retry(Exception):
    """Return or raise it in a handler: deliver this again, after a delay or the usual backoff."""

    def __init__(self, delay: timedelta | None = None) -> None:
        if delay is not None and span_to_millis(delay, "delay") < 0:
            raise ValueError(f"delay must not be negative, not {delay!r}")
        super().__init__(f"retry after {'the usual backoff' if delay is None else delay}")
        self.delay = delay


class Bury(Exception):
    """Return or raise it in a handler: park this out of the queue."""

    def __init__(self, reason: str) -> None:
        if not isinstance(reason, str):
            raise TypeError(f"reason must be a str, not {type(reason).__name__}")
        super().__init__(reason)
        self.reason = reason


class Acked(NamedTuple):
    """Handled: delete it."""


ACKED = Acked()


class Released(NamedTuple):
    """To be delivered again after a delay."""

    delay: timedelta


class Parked(NamedTuple):
    """To be buried."""

    reason: str


Verdict: TypeAlias = Acked | Released | Parked


class Rules(NamedTuple):
    """How failures are answered."""

    backoff: Backoff
    max_attempts: int | None


def judge(outcome: object, attempt: int, rules: Rules) -> Verdict:
    """Decide by what a handler returned or raised; an exception counts the same either way."""
    match outcome:
        case None:  # as nearly always
            return ACKED
        case Bury(reason=reason):
            return Parked(reason)
        case Retry(delay=delay):
            return _again(outcome, attempt, rules, delay)
        case type() if outcome is Retry:  # as `raise Retry` would be
            return _again(Retry(), attempt, rules, None)
        case BaseException():
            return _again(outcome, attempt, rules, None)
        case _:
            return ACKED


def _again(
    error: BaseException, attempt: int, rules: Rules, delay: timedelta | None
) -> Released | Parked:
    if rules.max_attempts is not None and attempt >= rules.max_attempts:
        told = "".join(traceback.format_exception(error))
        return Parked(f"max_attempts: failed {attempt} times, the last time with\n{told}")
    if delay is None:
        delay = rules.backoff.delay(attempt)
        span_to_millis(delay, "the backoff's delay")
    return Released(delay)

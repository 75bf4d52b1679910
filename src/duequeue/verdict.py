"""What becomes of a message after its handler has ended, as a pure decision."""

import traceback
from datetime import timedelta
from inspect import iscoroutine
from typing import NamedTuple, TypeAlias, TypeGuard

from duequeue.backoff import Backoff
from duequeue.errors import DeliveryLost, InvalidArgument, InvalidType
from duequeue.instants import span_to_millis


class Retry(Exception):
    """Returned or raised by a handler to have the message delivered again.

    It comes after the given delay, or else after the usual backoff.
    """

    def __init__(self, delay: timedelta | None = None) -> None:
        if delay is not None and span_to_millis(delay, "delay") < 0:
            raise InvalidArgument("delay", f"must not be negative, but it is {delay!r}")
        super().__init__(f"retry after {'the usual backoff' if delay is None else delay}")
        self.delay = delay


class Bury(Exception):
    """Returned or raised by a handler to have the message buried."""

    def __init__(self, reason: str) -> None:
        if not isinstance(reason, str):
            raise InvalidType("reason", f"must be a str, not {type(reason).__name__}")
        super().__init__(reason)
        self.reason = reason


class Acked(NamedTuple):
    """The message was handled and is to be deleted, with an encoded response if there is one."""

    response: bytes | None = None


ACKED = Acked()


class Released(NamedTuple):
    """The message is to be delivered again after a delay."""

    delay: timedelta


class Parked(NamedTuple):
    """The message is to be buried."""

    reason: str


Verdict: TypeAlias = Acked | Released | Parked


class Rules(NamedTuple):
    """What a consumer does about failures: how long to wait, and when to bury.

    Without `retry_on`, every exception that `bury_on` does not name is retried. With `respond`,
    what the handler returns is the response to its message.
    """

    backoff: Backoff
    max_attempts: int | None
    retry_on: tuple[type[BaseException], ...] | None = None
    bury_on: tuple[type[BaseException], ...] = ()
    timeout: timedelta | None = None
    respond: bool = False


def as_raised(outcome: object) -> object:
    """Return what a handler returned, but make of an exception class what `raise` would make.

    A coroutine that was never awaited becomes an error too, because nothing has been handled.
    """
    if iscoroutine(outcome):
        outcome.close()
        return TypeError(
            "the handler returned a coroutine that was never awaited: use a plain function, or "
            "AsyncQueue with a coroutine function"
        )
    if not isinstance(outcome, type) or not issubclass(outcome, BaseException):
        return outcome
    try:
        return outcome()
    except Exception as error:  # noqa: BLE001 - any error counts as the handler's own
        name = outcome.__name__
        return TypeError(
            f"the handler returned the class {name}, which cannot be raised as it is: {error}"
        )


def is_failure(outcome: object) -> TypeGuard[BaseException]:
    """Return whether a handler raised an exception that is not its verdict."""
    verdicts = Retry | Bury | DeliveryLost
    return isinstance(outcome, BaseException) and not isinstance(outcome, verdicts)


def judge(outcome: object, attempt: int, rules: Rules) -> Verdict:
    """Decide by what a handler raised, or by what `as_raised` made of what it returned."""
    if outcome is None:  # as nearly always
        return ACKED
    match outcome:
        case Bury(reason=reason):
            return Parked(reason)
        case Retry(delay=delay):
            return _again(outcome, attempt, rules, delay)
        case BaseException():
            refusal = _refusal_to_retry(type(outcome), rules)
            if refusal is not None:
                return Parked(f"{refusal}\n{_shown(outcome)}")
            return _again(outcome, attempt, rules, None)
        case _:
            return outcome if isinstance(outcome, Acked) else ACKED


def _again(
    error: BaseException, attempt: int, rules: Rules, delay: timedelta | None
) -> Released | Parked:
    if rules.max_attempts is not None and attempt >= rules.max_attempts:
        words = f"max_attempts: failed {attempt} times, the last time with"
        return Parked(f"{words}\n{_shown(error)}")
    if delay is None:
        delay = rules.backoff.delay(attempt)
        span_to_millis(delay, "the backoff's delay")
    return Released(delay)


def _refusal_to_retry(raised: type[BaseException], rules: Rules) -> str | None:
    """Return why an exception must not be retried; the most specific class that is named decides.

    `retry_on` does not apply to exceptions that are not an `Exception`, such as `SystemExit`,
    because they concern the process and not the message.
    """
    if rules.retry_on is None and not rules.bury_on:
        return None
    for each in raised.__mro__:
        if each in rules.bury_on:
            return f"bury_on: {each.__name__} is not retried; the handler failed with"
        if rules.retry_on is not None and each in rules.retry_on:
            return None
    if rules.retry_on is None or not issubclass(raised, Exception):
        return None
    return f"retry_on: {raised.__name__} is not one of its types; the handler failed with"


def _shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))

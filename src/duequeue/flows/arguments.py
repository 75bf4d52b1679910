"""Arguments of the faces, checked and turned into milliseconds."""

import inspect
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, TypeAlias

from duequeue.backoff import Backoff
from duequeue.defaults import CONSUMER_MAX_ATTEMPTS
from duequeue.errors import InvalidArgument, InvalidType
from duequeue.flows.context import Context
from duequeue.instants import LATEST, MILLISECOND, positive_millis, span_to_millis, to_millis
from duequeue.retention import Retention
from duequeue.retry_policy import RetryPolicy
from duequeue.verdict import Rules

# One type of exception, or a tuple of them, as after `except`.
ExceptionTypes: TypeAlias = type[BaseException] | tuple[type[BaseException], ...]

_MOST = 2**31 - 1

# A response that must be kept for longer is better stored elsewhere.
LONGEST_KEEP = timedelta(days=7)


class Default(Enum):
    """An argument that was not given, where None has a meaning of its own."""

    DEFAULT = "default"


DEFAULT = Default.DEFAULT


def expiry_millis(expires: datetime | timedelta, due_at: int, now: int) -> int:
    """Return the instant that `expires` means at `now`, which must come after the due time."""
    if isinstance(expires, datetime):
        instant = to_millis(expires, "expires")
    elif isinstance(expires, timedelta):
        instant = now + expires // MILLISECOND
    else:
        found = type(expires).__name__
        raise InvalidType("expires", f"must be a datetime, a timedelta or None, not {found}")
    if instant > LATEST:
        raise InvalidArgument(
            "expires", f"must lie in the years 1 to 9999 of UTC, but it is {expires!r}"
        )
    if instant <= due_at:
        raise InvalidArgument("expires", f"must come after the due time, but it is {expires!r}")
    return instant


def checked_limit(limit: int) -> int:
    """Return a limit that every database can count to."""
    if type(limit) is not int:
        raise InvalidType("limit", f"must be an int, not {type(limit).__name__}")
    return max(0, min(limit, _MOST))


def check_workers(handler: object, concurrency: int, batch: int) -> None:
    """Raise unless a consumer can work with these."""
    check_handler(handler)
    for argument, value in (("concurrency", concurrency), ("batch", batch)):
        if type(value) is not int or value < 1:
            raise InvalidArgument(argument, f"must be a whole number above 0, not {value!r}")


def check_handler(handler: object) -> None:
    """Raise unless a handler can be called with one argument, so far as Python knows."""
    if not callable(handler):
        raise InvalidType("handler", f"must be a function of a delivery, not {handler!r}")
    try:
        # Of a decorated function, what counts is what its decorator accepts.
        signature = inspect.signature(handler, follow_wrapped=False)
    except (TypeError, ValueError):
        return  # some functions that are written in C have none
    try:
        signature.bind(None)
    except TypeError:
        name = getattr(handler, "__qualname__", repr(handler))
        takes = ", ".join(signature.parameters) or "nothing"
        raise InvalidType(
            "handler", f"{name} must accept one argument, the delivery, but it takes {takes}"
        ) from None


def check_grace(grace: timedelta) -> None:
    """Raise unless a stop can wait for this long."""
    if span_to_millis(grace, "grace") < 0:
        raise InvalidArgument("grace", f"must not be negative, but it is {grace!r}")


def refuse_borrowed(context: Context[Any]) -> None:
    """Raise if a consumer would have to run inside a caller's transaction."""
    if context.is_borrowed:
        raise InvalidArgument(
            "within",
            text="a consumer outlives the caller's transaction: call consume on the queue itself",
        )


def checked_max_attempts(max_attempts: int | None) -> int | None:
    """Return a number of attempts, or None for any number."""
    if max_attempts is not None and (type(max_attempts) is not int or max_attempts < 1):
        raise InvalidArgument(
            "max_attempts", f"must be a whole number above 0, not {max_attempts!r}"
        )
    return max_attempts


def checked_flag(flag: bool, argument: str) -> bool:  # noqa: FBT001 - a check of a flag takes it
    """Return a bool, or raise for anything else."""
    if not isinstance(flag, bool):
        raise InvalidType(argument, f"must be True or False, not {flag!r}")
    return flag


def checked_retry(retry: RetryPolicy) -> RetryPolicy:
    """Return a retry policy, or raise for anything else."""
    if not isinstance(retry, RetryPolicy):
        raise InvalidType(
            "retry", f"must be a RetryPolicy, such as RetryPolicy(budget=…), not {retry!r}"
        )
    return retry


def checked_retention(retention: Retention | None) -> Retention | None:
    """Return a retention, or raise for anything else."""
    if retention is not None and not isinstance(retention, Retention):
        raise InvalidType(
            "retention", f"must be a Retention, such as Retention(history=…), not {retention!r}"
        )
    return retention


def checked_rules(
    backoff: Backoff | None,
    max_attempts: int | Default | None,
    max_attempts_of_queue: int | None,
    *,
    timeout: timedelta | None,
    retry_on: ExceptionTypes | None,
    bury_on: ExceptionTypes,
    respond: bool = False,
) -> Rules:
    """Return what a consumer does about failures.

    Without a limit of its own, it has the queue's. Without either, it has the default, because a
    message that always fails would otherwise be tried for ever.
    """
    if backoff is not None and not isinstance(backoff, Backoff):
        raise InvalidType("backoff", f"must be a Backoff, not {backoff!r}")
    if isinstance(max_attempts, Default):
        attempts: int | None = max_attempts_of_queue or CONSUMER_MAX_ATTEMPTS
    else:
        attempts = checked_max_attempts(max_attempts)
    if timeout is not None:
        positive_millis(timeout, "timeout")
    retried = None if retry_on is None else _exception_types(retry_on, "retry_on")
    buried = _exception_types(bury_on, "bury_on")
    if both := set(retried or ()) & set(buried):
        names = ", ".join(sorted(each.__name__ for each in both))
        raise InvalidArgument("retry_on", f"and bury_on must not both name {names}")
    respond = checked_flag(respond, "respond")
    return Rules(backoff or Backoff(), attempts, retried, buried, timeout, respond)


def _exception_types(types: ExceptionTypes, argument: str) -> tuple[type[BaseException], ...]:
    """Return exception types as a tuple, or raise for anything that `except` would refuse too."""
    found: tuple[Any, ...] = types if isinstance(types, tuple) else (types,)
    for each in found:
        if not isinstance(each, type) or not issubclass(each, BaseException):
            raise InvalidType(
                argument, f"must be an exception type or a tuple of exception types, not {types!r}"
            )
    return found


def consumer_lease_millis(lease: timedelta | None) -> int | None:
    """Return for how long a consumer leases; None means as the queue says."""
    return None if lease is None else positive_millis(lease, "lease")


def keep_millis(keep: timedelta) -> int:
    """Return for how long a response is kept."""
    millis = positive_millis(keep, "keep")
    if keep > LONGEST_KEEP:
        raise InvalidArgument(
            "keep", f"must be at most {LONGEST_KEEP.days} days, but it is {keep!r}"
        )
    return millis


def delay_millis(delay: timedelta) -> int:
    """Return a delay in milliseconds."""
    millis = span_to_millis(delay, "delay")
    if millis < 0:
        raise InvalidArgument("delay", f"must not be negative, but it is {delay!r}")
    return millis

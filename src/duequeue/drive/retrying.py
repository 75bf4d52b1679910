"""Operations that are tried again while the store is unavailable."""

import logging
from collections.abc import Iterator
from math import inf
from time import monotonic
from typing import TypeVar

from duequeue.drive.actions import Flow, Pause, Run
from duequeue.errors import StoreBusy, StoreUnavailable
from duequeue.port.store import LONGEST_CALL, Operation
from duequeue.process.contact import SILENT_SECONDS, StoreContact, one_line
from duequeue.retry_policy import RetryPolicy

T = TypeVar("T")

logger = logging.getLogger("duequeue")

# Even the last try of a call may take this long, because a healthy store that is busy sometimes
# does, and a poll with a short timeout must not fail then.
LEAST_SECONDS = 3.0


def retrying(
    policy: RetryPolicy,
    operation: Operation[T],
    *,
    try_seconds: float | None = None,
    gives_up_at: float = inf,
    consumes: bool = False,
    contact: StoreContact | None = None,
) -> Flow[T]:
    """Run an operation, and run it again while the store is unavailable and the budget lasts.

    No try begins after `gives_up_at` of the monotonic clock, even if the budget lasts longer. A
    single try takes up to `try_seconds`, or as long as the policy allows. The contact logs outages;
    a call that waits while others succeed logs once why its caller has to wait.
    """
    began = monotonic()
    longest = policy.try_seconds if try_seconds is None else try_seconds
    seconds = longest if gives_up_at == inf else _seconds(longest, gives_up_at - began)
    pauses: Iterator[float] | None = None
    silent, failed_at = True, began
    while True:
        try:
            result: T = yield Run(operation, seconds, consumes)
        except StoreUnavailable as error:
            is_busy = isinstance(error, StoreBusy)
            if contact is not None and not is_busy:
                contact.failed(error)
            if pauses is None:
                failed_at = monotonic()
                gives_up_at = min(gives_up_at, began + policy.budget.total_seconds())
                pauses = policy.pauses(gives_up_at - monotonic())
            pause = next(pauses, None)
            if pause is None:
                raise
            waits = monotonic() >= began + SILENT_SECONDS
            if silent and waits and _others_succeed(contact, failed_at, is_busy=is_busy):
                words = "%s; trying again for up to %s in total"
                logger.warning(words, one_line(error), policy.budget)
                silent = False
        else:
            if contact is not None:
                contact.reached_at = monotonic()
                if contact.failing_since is not None:
                    contact.regained()
            return result
        yield Pause(pause)
        seconds = _seconds(longest, gives_up_at - monotonic())


def _seconds(longest: float, left: float) -> float:
    """Return how long the next try may take; a long operation is not cut off."""
    return longest if longest >= LONGEST_CALL else min(longest, max(left, LEAST_SECONDS))


def _others_succeed(contact: StoreContact | None, failed_at: float, *, is_busy: bool) -> bool:
    """Return whether only this call waits; otherwise there is an outage, which the contact logs."""
    if contact is None:
        return True
    since = contact.failing_since
    return is_busy if since is None else since > failed_at

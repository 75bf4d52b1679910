"""Operations that are tried again while the store is unavailable."""

import logging
from collections.abc import Iterator
from time import monotonic
from typing import TypeVar

from duequeue.drive.actions import Flow, Pause, Run
from duequeue.errors import StoreUnavailable
from duequeue.port.store import Operation
from duequeue.retry_policy import RetryPolicy

T = TypeVar("T")

logger = logging.getLogger("duequeue")

# A call that is retried for longer than this logs once why its caller has to wait.
SILENT_SECONDS = 1.0


def retrying(policy: RetryPolicy, operation: Operation[T]) -> Flow[T]:
    """Run an operation, and run it again while the store is unavailable and the budget lasts."""
    began = monotonic()
    pauses: Iterator[float] | None = None
    silent = True
    while True:
        try:
            result: T = yield Run(operation)
        except StoreUnavailable as error:
            pauses = pauses or policy.pauses(monotonic() - began)
            pause = next(pauses, None)
            if pause is None:
                raise
            if silent and monotonic() >= began + SILENT_SECONDS:
                logger.warning("%s; trying again, for %s in all", error, policy.budget)
                silent = False
        else:
            return result
        yield Pause(pause)

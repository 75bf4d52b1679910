"""Runs an operation that concerns a whole database, and tries again while it is unavailable."""

from math import inf
from typing import TypeVar

from duequeue.drive.actions import performer, performer_async
from duequeue.drive.retrying import retrying
from duequeue.drive.steps import drive, drive_async
from duequeue.port.store import AsyncSession, Operation, Session
from duequeue.process.contact import StoreContact
from duequeue.retry_policy import RetryPolicy

R = TypeVar("R")


def run(session: Session, operation: Operation[R], retry: RetryPolicy) -> R:
    """Run an operation, which has as long as it takes."""
    return drive(retrying(retry, operation, try_seconds=inf), performer(session))


async def run_async(
    session: AsyncSession,
    operation: Operation[R],
    retry: RetryPolicy,
    seconds: float | None = inf,
    contact: StoreContact | None = None,
) -> R:
    """Run an operation in tries of so many seconds; None stands for those of the policy."""
    flow = retrying(retry, operation, try_seconds=seconds, contact=contact)
    return await drive_async(flow, performer_async(session))

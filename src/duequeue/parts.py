"""Queues together with the parts that they are made of, for what stands between the two.

Those are the server, callbacks, the command line, and tests.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, Generic

from typing_extensions import TypeVar

from duequeue import defaults
from duequeue.backends import backend_for
from duequeue.clock import Clock
from duequeue.codec import Codec
from duequeue.cron import scheduler_async
from duequeue.cron.scheduler import after_due_crons
from duequeue.drive.actions import Flow, performer, performer_async
from duequeue.drive.steps import drive, drive_async
from duequeue.flows import opening
from duequeue.flows.context import Context
from duequeue.flows.opening import Around, Opening
from duequeue.port.store import AsyncSession, Backend, Session, Store
from duequeue.queue import Queue
from duequeue.queue_async import AsyncQueue
from duequeue.retention import Retention
from duequeue.retry_policy import RetryPolicy

T = TypeVar("T", default=Any)
R = TypeVar("R")


@dataclass(frozen=True)
class QueueSettings:
    """How a process opens all queues of a database."""

    url: str = field(repr=False)  # it may hold a password
    clock: Clock
    lease: timedelta = defaults.CONSUMER_LEASE  # which is extended, as that of a consumer
    poll_interval: timedelta = defaults.POLL_INTERVAL
    max_attempts: int | None = None
    history: bool = True
    retention: Retention | None = None
    retry: RetryPolicy | None = None
    create: bool = (
        True  # whether a server makes queues for its clients; `open` always makes its own
    )
    # Returns the store of a queue with something around it that observes its calls.
    observe: Callable[[str, Store], Store] | None = None

    def opening(self, name: str, codec: Codec[T], backend: Backend | None = None) -> Opening[T]:
        """Check the settings for one queue; its store may be another one than that of the URL."""
        return opening.checked(
            backend_for(self.url) if backend is None else backend,
            name,
            codec=codec,
            lease=self.lease,
            poll_interval=self.poll_interval,
            clock=self.clock,
            retry=self.retry,
            max_attempts=self.max_attempts,
            history=self.history,
            retention=self.retention,
        )

    async def open(self, name: str, codec: Codec[T]) -> "AsyncParts[T]":
        """Open one queue."""
        around = None if self.observe is None else partial(self.observe, name)
        return await open_async_parts(self.opening(name, codec), around)


class Parts(Generic[T]):
    """A blocking queue, which closes its session; `drive` runs a flow on it."""

    def __init__(self, backend: Backend, context: Context[T], session: Session) -> None:
        self.queue = Queue(backend, context, session)
        self.backend = backend
        self.context = context
        self.session = session
        self._perform = after_due_crons(performer(session), context)

    def drive(self, flow: Flow[R]) -> R:
        """Run a flow on this queue."""
        return drive(flow, self._perform)


class AsyncParts(Generic[T]):
    """An awaiting queue, which closes its session; `drive` runs a flow on it.

    The queue shows payloads as its own codec decodes them, or else as the flows do.
    """

    def __init__(
        self,
        backend: Backend,
        context: Context[T],
        session: AsyncSession,
        codec: Codec[T] | None = None,
    ) -> None:
        shown = context if codec is None else replace(context, codec=codec)
        self.queue = AsyncQueue(backend, shown, session)
        self.backend = backend
        self.context = context
        self.session = session
        self.perform = scheduler_async.after_due_crons(performer_async(session), context)

    async def drive(self, flow: Flow[R]) -> R:
        """Run a flow on this queue."""
        return await drive_async(flow, self.perform)

    async def close(self) -> None:
        """Close the queue, and give its connections back."""
        await self.queue.close()


def open_parts(checked: Opening[T], around: Around | None = None) -> Parts[T]:
    """Open a queue; `around` returns its store with something around it."""
    return Parts(checked.backend, *checked.open(around))


async def open_async_parts(checked: Opening[T], around: Around | None = None) -> AsyncParts[T]:
    """Open an awaiting queue; `around` returns its store with something around it."""
    return AsyncParts(checked.backend, *await checked.open_async(around))

"""A queue whose payloads stay as the store keeps them, and the parts that a push needs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from duequeue import defaults
from duequeue.backends import backend_for
from duequeue.clock import Clock
from duequeue.codec import Codec
from duequeue.cron.scheduler_async import after_due_crons
from duequeue.drive.actions import performer_async
from duequeue.drive.steps import drive_async
from duequeue.flows import opening
from duequeue.flows.context import Context
from duequeue.port.store import Store
from duequeue.queue_async import AsyncQueue
from duequeue.retention import Retention


@dataclass(frozen=True)
class StoreSettings:
    """Which database, and how its queues are opened."""

    url: str
    clock: Clock
    poll_interval: timedelta = defaults.POLL_INTERVAL
    history: bool = True
    retention: Retention | None = None
    # Returns the store of a queue with something around it that observes its calls.
    observe: Callable[[str, Store], Store] | None = None


class OpenedQueue:
    """An open queue."""

    def __init__(
        self,
        queue: AsyncQueue[bytes],
        context: Context[bytes],
        perform: Callable[[Any], Awaitable[object]],
    ) -> None:
        self.queue = queue
        self.context = context
        self.perform = perform

    @classmethod
    async def open(
        cls, settings: StoreSettings, name: str, codec: Codec[bytes], *, history: bool
    ) -> "OpenedQueue":
        """Open a queue of the database."""
        backend = backend_for(settings.url)
        checked = opening.checked(
            backend,
            name,
            codec=codec,
            lease=defaults.CONSUMER_LEASE,  # which is extended, as that of a consumer
            poll_interval=settings.poll_interval,
            clock=settings.clock,
            history=history,
            retention=settings.retention if history else None,
        )
        session = backend.async_session()
        try:
            context = await drive_async(checked.flow(), performer_async(session))
        except BaseException:
            await session.close()
            raise
        if settings.observe is not None:
            context = replace(context, store=settings.observe(name, context.store))
        perform = after_due_crons(performer_async(session), context)
        return cls(AsyncQueue(backend, context, session), context, perform)

    async def close(self) -> None:
        """Close the queue, and give its connections back."""
        await self.queue.close()

"""Queues together with the parts that they are made of, for tests that stand between the two."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from duequeue import AsyncQueue, Queue
from duequeue.backends import backend_for
from duequeue.drive.actions import performer, performer_async
from duequeue.drive.steps import drive, drive_async
from duequeue.flows import opening
from duequeue.flows.context import Context
from duequeue.port.store import AsyncSession, Backend, Session, Store

# Returns the store of a queue, with something around it.
Around = Callable[[Store], Store]


class Parts(NamedTuple):
    """A blocking queue, which closes its session."""

    queue: Queue[Any]
    context: Context[Any]
    session: Session
    backend: Backend


class AsyncParts(NamedTuple):
    """An awaiting queue, which closes its session."""

    queue: AsyncQueue[Any]
    context: Context[Any]
    session: AsyncSession
    backend: Backend


def open_parts(
    url: str, name: str = "orders", around: Around | None = None, **options: Any
) -> Parts:
    """Open a queue with the options of `opening.checked`."""
    backend = backend_for(url)
    session = backend.session()
    flow = opening.checked(backend, name, **options).flow()
    context = _with(around, drive(flow, performer(session)))
    return Parts(Queue(backend, context, session), context, session, backend)


async def open_async_parts(
    url: str, name: str = "orders", around: Around | None = None, **options: Any
) -> AsyncParts:
    """Open an awaiting queue with the options of `opening.checked`."""
    backend = backend_for(url)
    session = backend.async_session()
    flow = opening.checked(backend, name, **options).flow()
    context = _with(around, await drive_async(flow, performer_async(session)))
    return AsyncParts(AsyncQueue(backend, context, session), context, session, backend)


def _with(around: Around | None, context: Context[Any]) -> Context[Any]:
    return context if around is None else replace(context, store=around(context.store))

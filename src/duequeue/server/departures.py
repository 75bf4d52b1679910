"""Clients that go away before they have their answer."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class ClientGone(Exception):
    """The client closed the connection before its request was answered."""


async def unless_gone(receive: Callable[[], Awaitable[object]], work: Coroutine[Any, Any, T]) -> T:
    """Do something that only the client needs, and cancel it if the client goes away.

    The request must have been read to its end.
    """
    this = asyncio.current_task()
    working = asyncio.create_task(work)
    gone = asyncio.ensure_future(receive())
    gone.add_done_callback(lambda _: working.cancel())
    try:
        return await working
    except asyncio.CancelledError:
        if this is not None and this.cancelling():  # not the client has gone, but the server stops
            raise
        raise ClientGone from None
    finally:
        gone.cancel()

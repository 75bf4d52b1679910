"""A leased message and the awaiting ways to settle it."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from typing_extensions import TypeVar

from duequeue.drive.actions import Flow
from duequeue.errors import DueQueueError
from duequeue.flows import responding, settling
from duequeue.flows.arguments import DEFAULT
from duequeue.flows.context import Context
from duequeue.leased import LeasedMessage
from duequeue.port.store import Claimed

T = TypeVar("T", default=Any)


class AsyncDelivery(LeasedMessage[T]):
    """A leased message; each way to settle it returns whether this call won.

    An `async with` block acks it at the end. An exception releases it, and is then raised further.
    """

    __slots__ = ("_context", "_drive")

    def __init__(
        self,
        drive: Callable[[Flow[Any]], Awaitable[Any]],
        context: Context[T],
        claimed: Claimed,
        payload: T,
        lease_until: int,
    ) -> None:
        super().__init__(context.name, claimed, payload, lease_until)
        self._drive = drive
        self._context = context

    async def ack(self, response: object = DEFAULT, *, keep: timedelta | None = None) -> bool:
        """Delete the message, because it was handled.

        If you pass a response, even None, `queue.response(key)` returns it, for an hour or `keep`.
        """
        if response is DEFAULT and keep is None:
            flow = settling.ack(self._context, self)
        else:
            flow = responding.answer(self._context, self, response, keep)
        self.settled = True  # only now, because a bad argument settles nothing
        won: bool = await self._drive(flow)
        return won

    async def extend(self, lease: timedelta | None = None) -> bool:
        """Hold the message for another lease from now on."""
        won: bool = await self._drive(settling.extend(self._context, self, lease))
        return won

    async def release(self, delay: timedelta = timedelta(0)) -> bool:
        """Give the message back, due after a delay."""
        flow = settling.release(self._context, self, delay)
        self.settled = True  # only now, because a bad argument settles nothing
        won: bool = await self._drive(flow)
        return won

    async def bury(self, reason: str) -> bool:
        """Move the message out of the queue, with a reason."""
        flow = settling.bury(self._context, self, reason)
        self.settled = True
        won: bool = await self._drive(flow)
        return won

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self.ack()
        else:
            # The caller's error matters more, and the message comes back after its lease anyway.
            with suppress(DueQueueError):
                await self.release()

"""What `AsyncQueue.open` returns: awaiting it, or entering it, opens the queue."""

from collections.abc import Callable, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TypeVar, Unpack, overload

from duequeue.consumer.bound_handler import BoundHandler, ConsumerOptions, bind
from duequeue.delivery_async import AsyncDelivery
from duequeue.flows.context import Context
from duequeue.flows.opening import Opening
from duequeue.port.store import AsyncSession, Backend


class Closable(Protocol):
    """Something that can be closed."""

    async def close(self) -> None:
        """Close it."""


Q = TypeVar("Q", bound=Closable)
R = TypeVar("R")


class AwaitableQueue(Generic[Q]):
    """A queue that is not open yet; `await` it, or use it in an `async with` block."""

    def __init__(
        self,
        checked: Opening[Any],
        make: Callable[[Backend, Context[Any], AsyncSession, Opening[Any]], Q],
    ) -> None:
        self._checked = checked
        self._make = make
        self._opened: Q | None = None

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"the queue is not open yet, so it has no {name!r}: "
            "use `async with AsyncQueue.open(…) as queue`, or `queue = await AsyncQueue.open(…)`"
        )

    def __await__(self) -> Generator[Any, Any, Q]:
        return self._open().__await__()

    @overload
    def handler(
        self, function: Callable[[AsyncDelivery[Any]], R], /
    ) -> BoundHandler[AsyncDelivery[Any], R, NoReturn]: ...

    @overload
    def handler(
        self, function: None = None, /, **options: Unpack[ConsumerOptions]
    ) -> Callable[
        [Callable[[AsyncDelivery[Any]], R]], BoundHandler[AsyncDelivery[Any], R, NoReturn]
    ]: ...

    def handler(
        self,
        function: Callable[[AsyncDelivery[Any]], R] | None = None,
        /,
        **options: Unpack[ConsumerOptions],
    ) -> object:
        """Decorate a function as the handler of this queue; `duequeue worker` will open it."""
        return bind(_refuse_to_consume, function, options, opening=self._checked)

    async def __aenter__(self) -> Q:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._opened is not None:
            await self._opened.close()

    # Type checkers do not see these methods, so that they report the mistake themselves.
    if not TYPE_CHECKING:

        def __enter__(self) -> NoReturn:
            raise TypeError("use `async with AsyncQueue.open(…) as queue`, not `with`")

        def __exit__(self, *_: object) -> None:
            """Do nothing; Python looks for this method before it enters the block."""

    async def _open(self) -> Q:
        context, session = await self._checked.open_async()
        return self._make(self._checked.backend, context, session, self._checked)


def _refuse_to_consume(*_: object, **__: object) -> NoReturn:
    raise RuntimeError(
        "the queue is not open yet: run this handler with `duequeue worker`, or open the queue and "
        "call `queue.consume(handler.function)`"
    )

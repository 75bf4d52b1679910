"""Calls a user's `on_buried` on a thread or task of its own.

So a slow hook does not keep the consumer from settling messages and extending leases.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeAlias

from typing_extensions import TypeVar

from duequeue.errors import InvalidType
from duequeue.message import BurialNotice

T = TypeVar("T", default=Any)

OnBuried: TypeAlias = Callable[[BurialNotice[T]], object]
AsyncOnBuried: TypeAlias = Callable[[BurialNotice[T]], Awaitable[object]]

logger = logging.getLogger("duequeue.consumer")


def refuse_coroutine_function(function: object, argument: str) -> None:
    """Raise for a coroutine function, and for an object whose `__call__` is one."""
    if any(map(inspect.iscoroutinefunction, (function, type(function).__call__))):
        raise InvalidType(
            argument,
            "must be a plain function, not a coroutine function: "
            "use AsyncQueue for coroutine functions",
        )


def refuse_plain_function(function: Any, argument: str) -> None:
    """Raise for a function that was written with a plain `def`.

    A lambda and an object with a `__call__` may return an awaitable, so they are not refused.
    """
    while isinstance(function, partial):
        function = function.func
    inner = inspect.unwrap(function, stop=inspect.iscoroutinefunction)
    inner = getattr(inner, "__func__", inner)
    is_plain = inspect.isfunction(inner) and not inspect.iscoroutinefunction(inner)
    if is_plain and inner.__name__ != "<lambda>":
        raise InvalidType(
            argument,
            "must be a coroutine function, written with `async def`, not a plain "
            "function: use Queue for plain functions",
        )


class BurialHook(Generic[T]):
    """A plain function that is called with each burial, on the thread that runs this."""

    def __init__(self, call: OnBuried[T]) -> None:
        check_callable(call)
        refuse_coroutine_function(call, "on_buried")
        self._call = call
        self._notices: SimpleQueue[BurialNotice[T] | None] = SimpleQueue()

    def add(self, notice: BurialNotice[T]) -> None:
        """Let the function be called soon; any thread may call this."""
        self._notices.put(notice)

    def run(self) -> None:
        """Call the function with each burial until `end` is called, and log its errors."""
        while (notice := self._notices.get()) is not None:
            try:
                self._call(notice)
            except BaseException as error:  # noqa: BLE001 - not even sys.exit ends the hook
                _log_failure(notice, error)

    def end(self) -> None:
        """Let `run` return after the burials so far."""
        self._notices.put(None)


class AsyncBurialHook(Generic[T]):
    """A coroutine function that is awaited with each burial, in the task that runs this."""

    def __init__(self, call: AsyncOnBuried[T]) -> None:
        check_callable(call)
        refuse_plain_function(call, "on_buried")
        self._call = call
        self._notices: asyncio.Queue[BurialNotice[T] | None] = asyncio.Queue()

    def add(self, notice: BurialNotice[T]) -> None:
        """Let the function be awaited soon."""
        self._notices.put_nowait(notice)

    async def run(self) -> None:
        """Await the function with each burial until `end` is called, and log its errors."""
        while (notice := await self._notices.get()) is not None:
            try:
                await self._call(notice)
            except asyncio.CancelledError as error:
                if _is_being_cancelled():
                    raise
                _log_failure(notice, error)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - likewise
                _log_failure(notice, error)

    def end(self) -> None:
        """Let `run` return after the burials so far."""
        self._notices.put_nowait(None)


def check_callable(on_buried: object) -> None:
    """Raise unless the hook can be called."""
    if not callable(on_buried):
        raise InvalidType("on_buried", f"must be a function of a BurialNotice, not {on_buried!r}")


def _is_being_cancelled() -> bool:
    """Return whether somebody has cancelled this task, and not only what it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _log_failure(notice: BurialNotice[Any], error: BaseException) -> None:
    words = "queue %r: on_buried failed for %r, which stays buried"
    logger.error(words, notice.queue_name, notice.key, exc_info=error)

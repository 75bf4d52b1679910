"""Which functions suit which face: plain ones a `Queue`, coroutine functions an `AsyncQueue`."""

import inspect
from functools import partial
from typing import Any

from duequeue.errors import InvalidType


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

"""A function that `@queue.handler` has tied to its queue."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial, update_wrapper
from typing import Any, Generic, TypedDict, TypeVar

from duequeue.backoff import Backoff
from duequeue.errors import InvalidType
from duequeue.flows.arguments import ExceptionTypes, check_handler
from duequeue.flows.opening import Opening
from duequeue.message import BurialNotice
from duequeue.suggestions import advice

D = TypeVar("D")
R = TypeVar("R")
C = TypeVar("C")


class ConsumerOptions(TypedDict, total=False):
    """The options of `consume`; those left out have its defaults."""

    concurrency: int
    batch: int
    backoff: Backoff | None
    max_attempts: int | None
    lease: timedelta | None
    timeout: timedelta | None
    retry_on: ExceptionTypes | None
    bury_on: ExceptionTypes
    on_buried: Callable[[BurialNotice[Any]], Any] | None
    respond: bool
    keep: timedelta


def check_options(options: ConsumerOptions) -> None:
    """Raise for an option that `consume` does not have, and name the most similar one."""
    known = ConsumerOptions.__annotations__
    for name in options.keys() - known:
        raise InvalidType(name, text=f"a handler has no option {name!r}; {advice(name, known)}")


class BoundHandler(Generic[D, R, C]):
    """A function that can still be called as usual; `consume` starts a consumer that calls it.

    It also knows its queue, how that is opened, and its options, because `duequeue worker` serves
    it with these.
    """

    def __init__(
        self,
        function: Callable[[D], R],
        start: Callable[[], C],
        *,
        queue: object = None,
        opening: Opening[Any] | None = None,
        options: ConsumerOptions | None = None,
    ) -> None:
        self.function = function
        self.queue = queue
        self.opening = opening
        self.options: ConsumerOptions = options or {}
        self._start = start
        update_wrapper(self, function)

    def __call__(self, delivery: D) -> R:
        """Call the function, as a test would."""
        return self.function(delivery)

    def consume(self) -> C:
        """Start a consumer with the options given to the decorator."""
        return self._start()

    def __repr__(self) -> str:
        return f"<handler {getattr(self.function, '__qualname__', self.function)}>"


def bind(
    consume: Callable[..., C],
    function: Callable[[D], R] | None,
    options: ConsumerOptions,
    *,
    queue: object = None,
    opening: Opening[Any] | None = None,
) -> BoundHandler[D, R, C] | Callable[[Callable[[D], R]], BoundHandler[D, R, C]]:
    """Decorate a function, or return the decorator if there is none yet."""
    check_options(options)

    def bound(function: Callable[[D], R]) -> BoundHandler[D, R, C]:
        check_handler(function)
        start = partial(consume, function, **options)
        return BoundHandler(function, start, queue=queue, opening=opening, options=options)

    if function is None:
        return bound
    if not callable(function):
        raise InvalidType("handler", f"must decorate a function, not {type(function).__name__}")
    return bound(function)

"""For tests of your own code: deliveries without a poll, and a way to handle all that is due."""

import inspect
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, Unpack

from typing_extensions import TypeVar

from duequeue.clock import ManualClock
from duequeue.consumer.bound_handler import BoundHandler, ConsumerOptions, check_options
from duequeue.consumer.burial_hook import AsyncBurialHook, BurialHook, refuse_plain_function
from duequeue.consumer.settling import as_answer, settle, verdict_on
from duequeue.consumer.workload import Done
from duequeue.delivery import Delivery
from duequeue.delivery_async import AsyncDelivery
from duequeue.drive.actions import Flow
from duequeue.errors import InvalidArgument, InvalidType
from duequeue.events.events import ReportOutcome
from duequeue.flows import polling
from duequeue.flows.arguments import check_workers, checked_limit, checked_rules, keep_millis
from duequeue.flows.context import Context
from duequeue.leased import LeasedMessage
from duequeue.port.store import Claimed
from duequeue.queue import Queue
from duequeue.queue_async import AsyncQueue
from duequeue.verdict import Rules, as_raised, is_failure

__all__ = [
    "AsyncLoneDelivery",
    "LoneDelivery",
    "async_delivery",
    "async_drain",
    "delivery",
    "drain",
]

T = TypeVar("T", default=Any)
D = TypeVar("D", bound=LeasedMessage)

# No test handles more messages on purpose, but an endless loop reaches this number soon.
LIMIT = 10_000
_DEFAULT_MAX_ATTEMPTS = inspect.signature(Queue.consume).parameters["max_attempts"].default


class LoneDelivery(Delivery[T]):
    """A delivery on a memory queue of its own, `queue`, which shows what became of the message."""

    __slots__ = ("queue",)

    def __init__(
        self,
        queue: Queue[T],
        drive: Callable[[Flow[Any]], Any],
        context: Context[T],
        claimed: Claimed,
        payload: T,
        lease_until: int,
    ) -> None:
        super().__init__(drive, context, claimed, payload, lease_until)
        self.queue = queue


class AsyncLoneDelivery(AsyncDelivery[T]):
    """A delivery on a memory queue of its own, `queue`, which shows what became of the message."""

    __slots__ = ("queue",)

    def __init__(
        self,
        queue: AsyncQueue[T],
        drive: Callable[[Flow[Any]], Awaitable[Any]],
        context: Context[T],
        claimed: Claimed,
        payload: T,
        lease_until: int,
    ) -> None:
        super().__init__(drive, context, claimed, payload, lease_until)
        self.queue = queue


def delivery(
    key: str,
    payload: T,
    attempt: int = 1,
    *,
    headers: Mapping[str, str] | None = None,
    queue_name: str = "testing",
    clock: ManualClock | None = None,
) -> LoneDelivery[T]:
    """Return a delivery of this message, for a test that calls a handler itself.

    It is a real delivery, on a memory queue of its own, with a history and a clock that stands
    still. The payload is the very object that you pass.
    """
    codec, clock = _prepared(payload, attempt, clock)
    queue: Queue[T] = Queue.open(_private_url(), queue_name, codec=codec, clock=clock, history=True)
    queue.offer(key, payload, headers=headers)
    for _ in range(attempt - 1):
        queue.poll().release()
    wrap = partial(LoneDelivery[T], queue, queue._drive, queue._context)  # noqa: SLF001 - it is our own
    (found,) = queue._drive(polling.try_poll_many(queue._context, wrap, 1))  # noqa: SLF001 - likewise
    return found


async def async_delivery(
    key: str,
    payload: T,
    attempt: int = 1,
    *,
    headers: Mapping[str, str] | None = None,
    queue_name: str = "testing",
    clock: ManualClock | None = None,
) -> AsyncLoneDelivery[T]:
    """Return a delivery of this message, for a test that calls a coroutine handler itself.

    It is a real delivery, on a memory queue of its own, with a history and a clock that stands
    still. The payload is the very object that you pass.
    """
    codec, clock = _prepared(payload, attempt, clock)
    queue: AsyncQueue[T] = await AsyncQueue.open(
        _private_url(), queue_name, codec=codec, clock=clock, history=True
    )
    await queue.offer(key, payload, headers=headers)
    for _ in range(attempt - 1):
        await (await queue.poll()).release()
    wrap = partial(AsyncLoneDelivery[T], queue, queue._drive, queue._context)  # noqa: SLF001 - it is our own
    (found,) = await queue._drive(polling.try_poll_many(queue._context, wrap, 1))  # noqa: SLF001 - likewise
    return found


def drain(
    queue: Queue[T],
    handler: Callable[[Delivery[T]], object],
    *,
    limit: int = LIMIT,
    raise_errors: bool = True,
    **options: Unpack[ConsumerOptions],
) -> int:
    """Call the handler for each due message until none is due, and return how often it was called.

    It runs in the calling thread and follows the rules of `consume`. It takes the same options, and
    adds those of `@queue.handler`. Messages that are due later stay, also those that a failure has
    delayed. After `limit` messages, it raises a `RuntimeError`.

    It raises the first exception of the handler, after it has released or buried the message. With
    `raise_errors=False`, it goes on. `Retry`, `Bury` and `DeliveryLost` are never raised.
    """
    given = _all_options(handler, options)
    hook = BurialHook(given.get("on_buried") or _ignore)
    drive = queue._drive  # noqa: SLF001 - it is our own
    draining = _draining(queue._context, partial(Delivery, drive), given, hook, limit)  # noqa: SLF001 - likewise
    while (found := drive(draining.next())) is not None:
        with queue.events.handling(found) as report:
            outcome: object
            try:
                outcome = handler(found)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the handler's verdict
                outcome = error
            if inspect.iscoroutine(outcome):
                outcome.close()
                raise InvalidType(
                    "handler", "must be a plain function: use async_drain for this one"
                )
            failure = drive(draining.settle(found, outcome, report))
        hook.end()
        hook.run()
        if raise_errors and failure is not None:
            raise failure
    hook.end()
    hook.run()
    return draining.handled


async def async_drain(
    queue: AsyncQueue[T],
    handler: Callable[[AsyncDelivery[T]], Awaitable[object]],
    *,
    limit: int = LIMIT,
    raise_errors: bool = True,
    **options: Unpack[ConsumerOptions],
) -> int:
    """Await the handler for each due message until none is due, and return how often it was called.

    It runs in the calling task and follows the rules of `consume`. It takes the same options, and
    adds those of `@queue.handler`. Messages that are due later stay, also those that a failure has
    delayed. After `limit` messages, it raises a `RuntimeError`.

    It raises the first exception of the handler, after it has released or buried the message. With
    `raise_errors=False`, it goes on. `Retry`, `Bury` and `DeliveryLost` are never raised.
    """
    refuse_plain_function(handler, "handler")
    given = _all_options(handler, options)
    hook = AsyncBurialHook(given.get("on_buried") or _ignore_async)
    drive = queue._drive  # noqa: SLF001 - it is our own
    draining = _draining(queue._context, partial(AsyncDelivery, drive), given, hook, limit)  # noqa: SLF001 - likewise
    while (found := await drive(draining.next())) is not None:
        with queue.events.handling(found) as report:
            outcome: object
            try:
                outcome = await handler(found)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the handler's verdict
                outcome = error
            failure = await drive(draining.settle(found, outcome, report))
        hook.end()
        await hook.run()
        if raise_errors and failure is not None:
            raise failure
    hook.end()
    await hook.run()
    return draining.handled


class _Draining(Generic[D, T]):
    """Flows that lease and settle one message after the other, until none is due."""

    def __init__(
        self,
        context: Context[T],
        deliver: Callable[[Context[T], Claimed, T, int], D],
        rules: Rules,
        hook: BurialHook[T] | AsyncBurialHook[T] | None,
        limit: int,
    ) -> None:
        # As in a consumer, polls obey max_attempts too, and the hook is called for every burial.
        on_buried = None if hook is None else hook.add
        self._context = replace(context, max_attempts=rules.max_attempts, on_buried=on_buried)
        self._wrap = partial(deliver, self._context)
        self._rules = rules
        self._limit = limit
        self.handled = 0

    def next(self) -> Flow[D | None]:
        """Lease the next message, if one is due; raise if this has gone on for too long."""
        found: Sequence[D] = yield from polling.try_poll_many(self._context, self._wrap, 1)
        if not found:
            return None
        if self.handled == self._limit:
            raise RuntimeError(
                f"after {self._limit} messages, queue {self._context.name!r} still has messages "
                f"that are due, such as {found[0].key!r}: if the handler does not offer or release "
                "them again and again, pass a higher limit"
            )
        self.handled += 1
        if self._context.keeps_history:
            found[0].handler_began = self._context.now()
        return found[0]

    def settle(
        self, message: D, outcome: object, report: ReportOutcome
    ) -> Flow[BaseException | None]:
        """Settle a message by what its handler returned or raised; return the error, if any."""
        if outcome is not None:
            outcome = as_raised(outcome)
        if self._rules.respond:
            try:
                outcome = as_answer(self._context, message, outcome)
            except Exception as error:  # noqa: BLE001 - it counts as the handler's own
                outcome = error
        verdict = verdict_on(self._context, message, outcome, self._rules)
        report(outcome, verdict)
        if verdict is not None:
            yield from settle(self._context, [Done(message, verdict)])
        return outcome if is_failure(outcome) else None


@dataclass(frozen=True)
class _AsGiven(Generic[T]):
    """A codec for one payload, which it returns as it was given."""

    payload: T
    type_name: str = "as given"

    def encode(self, value: T, /) -> bytes:  # noqa: ARG002 - the codec's signature
        return b""

    def decode(self, data: bytes, /) -> T:  # noqa: ARG002 - the codec's signature
        return self.payload


def _prepared(
    payload: T, attempt: int, clock: ManualClock | None
) -> tuple[_AsGiven[T], ManualClock]:
    if type(attempt) is not int or attempt < 1:
        raise InvalidArgument("attempt", f"must be a whole number above 0, not {attempt!r}")
    return _AsGiven(payload), ManualClock(datetime.now(UTC)) if clock is None else clock


def _private_url() -> str:
    # Nobody needs to close such a queue, because its memory ends with the last reference to it.
    return f"memory:testing-{secrets.token_hex(8)}"


def _all_options(handler: object, options: ConsumerOptions) -> ConsumerOptions:
    """Return the options given here, and those that a decorated handler brings with it."""
    check_workers(handler, 1, 1)
    check_options(options)
    brought: ConsumerOptions = handler.options if isinstance(handler, BoundHandler) else {}
    return {**brought, **options}


def _draining(
    context: Context[T],
    deliver: Callable[[Context[T], Claimed, T, int], D],
    options: ConsumerOptions,
    hook: BurialHook[T] | AsyncBurialHook[T],
    limit: int,
) -> _Draining[D, T]:
    rules = checked_rules(
        options.get("backoff"),
        options.get("max_attempts", _DEFAULT_MAX_ATTEMPTS),
        context.max_attempts,
        timeout=None,  # nobody could end a function that runs on this thread
        retry_on=options.get("retry_on"),
        bury_on=options.get("bury_on", ()),
        respond=options.get("respond", False),
    )
    keep = options.get("keep")
    if keep is not None:
        context = replace(context, keep=keep_millis(keep))
    return _Draining(context, deliver, rules, hook, checked_limit(limit))


def _ignore(_: object) -> None:
    pass


async def _ignore_async(_: object) -> None:
    pass

"""The awaiting face of a queue."""

import asyncio
import builtins
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Generic, Unpack, overload
from weakref import WeakSet

from typing_extensions import TypeVar

from duequeue import defaults
from duequeue.backends import backend_for
from duequeue.backoff import Backoff
from duequeue.clock import Clock
from duequeue.codec import Codec
from duequeue.consumer.bound_handler import BoundHandler, ConsumerOptions, bind
from duequeue.consumer.burial_hook import AsyncOnBuried
from duequeue.consumer.consumer_async import AsyncConsumer, AsyncHandler
from duequeue.cron.cron_async import AsyncCron
from duequeue.cron.scheduler_async import after_due_crons
from duequeue.delivery_async import AsyncDelivery
from duequeue.drive.actions import Flow, performer_async
from duequeue.drive.steps import drive_async
from duequeue.events.events import Events
from duequeue.flows import (
    burials,
    inspecting,
    listing,
    offering,
    opening,
    polling,
    rescheduling,
    responding,
    settling,
)
from duequeue.flows.arguments import (
    DEFAULT,
    Default,
    ExceptionTypes,
    check_workers,
    checked_rules,
    consumer_lease_millis,
    keep_millis,
    refuse_borrowed,
)
from duequeue.flows.context import Context
from duequeue.flows.opening import Opening, QueueOptions
from duequeue.message import (
    Bucket,
    BuriedMessage,
    Message,
    OfferOutcome,
    Page,
    QueueStats,
    Snapshot,
    State,
)
from duequeue.opening_async import AwaitableQueue
from duequeue.port.store import AsyncSession, Backend
from duequeue.process.lifetime import AsyncClosing, LoopLifetime, OnlyOpened
from duequeue.response import Response
from duequeue.retention import Retention
from duequeue.retry_policy import RetryPolicy
from duequeue.settled import Settled

T = TypeVar("T", default=Any)
P = TypeVar("P")
R = TypeVar("R")


class AsyncQueue(OnlyOpened, AsyncClosing, Generic[T]):
    """A delayed queue: you offer a message for an instant, and polls return it once that has come.

    It has the names of `Queue`, awaited. Safe to share among the tasks of one event loop. Close it,
    or use it in an `async with` block.
    """

    def __init__(
        self,
        backend: Backend,
        context: Context[T],
        session: AsyncSession,
        opening: Opening[T] | None = None,
    ) -> None:
        self._opening = opening
        self._backend = backend
        self._context = context
        self._session = session
        self._lifetime = LoopLifetime(f"queue {context.name!r}")
        perform = performer_async(session, self._lifetime.check)
        self._perform = after_due_crons(perform, context)
        self._wrap = partial(AsyncDelivery, self._drive, context)
        self._cron = AsyncCron(self._drive, partial(drive_async, perform=perform), context)
        self._consumers: WeakSet[AsyncConsumer[T]] = WeakSet()

    # This is a type variable of the method, because type checkers cannot solve the class's here.
    @overload
    @classmethod
    def open(
        cls, url: str, name: str, *, codec: Codec[P] | type[P], **options: Unpack[QueueOptions]
    ) -> "AwaitableQueue[AsyncQueue[P]]": ...

    @overload
    @classmethod
    def open(
        cls, url: str, name: str, *, codec: None = None, **options: Unpack[QueueOptions]
    ) -> "AwaitableQueue[AsyncQueue[Any]]": ...

    @classmethod
    def open(  # noqa: PLR0913 - the options of a queue
        cls,
        url: str,
        name: str,
        *,
        codec: Codec[Any] | type[Any] | None = None,
        lease: timedelta | None = None,
        poll_interval: timedelta = defaults.POLL_INTERVAL,
        clock: Clock | None = None,
        retry: RetryPolicy | None = None,
        max_attempts: int | None = None,
        migrate: bool = True,
        history: bool = False,
        retention: Retention | None = None,
        response_type: Codec[Any] | type[Any] | None = None,
        token: str | None = None,
    ) -> "AwaitableQueue[AsyncQueue[Any]]":
        """Open a queue in the store that the URL names, creating its tables if need be.

        Await this, or use it in an `async with` block.
        """
        return AwaitableQueue(
            opening.checked(
                backend_for(url, token),
                name,
                codec=codec,
                lease=lease,
                poll_interval=poll_interval,
                clock=clock,
                retry=retry,
                max_attempts=max_attempts,
                migrate=migrate,
                history=history,
                retention=retention,
                response_type=response_type,
            ),
            cls,
        )

    @property
    def name(self) -> str:
        """The name given to `open`."""
        return self._context.name

    @property
    def events(self) -> Events:
        """The events of this queue, to which listeners subscribe."""
        return self._context.events

    @property
    def cron(self) -> AsyncCron[T]:
        """The recurring messages of this queue, put in by schedules."""
        return self._cron

    async def offer(
        self,
        key: str,
        payload: T,
        due: datetime | timedelta | None = None,
        *,
        replace: bool = True,
        headers: Mapping[str, str] | None = None,
        expires: datetime | timedelta | None = None,
    ) -> OfferOutcome:
        """Put a message in, due at an instant, after a delay, or now.

        `expires` is an instant or a time from now, from which it is dropped instead of delivered.
        """
        return await self._drive(
            offering.offer(
                self._context,
                key,
                payload,
                due,
                replace=replace,
                headers=headers,
                expires=expires,
            )
        )

    async def offer_batch(self, messages: Iterable[Message[T]]) -> builtins.list[OfferOutcome]:
        """Offer many messages in a few round trips, as if one by one in this order."""
        return await self._drive(offering.offer_batch(self._context, messages))

    async def try_poll(self) -> AsyncDelivery[T] | None:
        """Lease the earliest due message, if there is one now."""
        found = await self._drive(polling.try_poll_many(self._context, self._wrap, 1))
        return found[0] if found else None

    async def try_poll_many(self, limit: int) -> builtins.list[AsyncDelivery[T]]:
        """Lease up to `limit` due messages, in due order."""
        return await self._drive(polling.try_poll_many(self._context, self._wrap, limit))

    @overload
    async def poll(self, timeout: None = None) -> AsyncDelivery[T]: ...

    @overload
    async def poll(self, timeout: timedelta | float) -> AsyncDelivery[T] | None: ...

    async def poll(self, timeout: timedelta | float | None = None) -> AsyncDelivery[T] | None:
        """Wait until a message is due and lease it; return None once the timeout has passed."""
        found = await self._drive(polling.poll_many(self._context, self._wrap, 1, timeout))
        return found[0] if found else None

    async def poll_many(
        self, limit: int, timeout: timedelta | float | None = None
    ) -> builtins.list[AsyncDelivery[T]]:
        """Wait until messages are due and lease up to `limit`; return [] after the timeout."""
        return await self._drive(polling.poll_many(self._context, self._wrap, limit, timeout))

    async def ack_many(self, deliveries: Iterable[AsyncDelivery[T]]) -> int:
        """Delete handled messages in one round trip, and count the acks that won."""
        return await self._drive(settling.ack_many(self._context, list(deliveries)))

    async def read(self, key: str) -> Snapshot[T] | None:
        """Look at a message in any state, changing nothing."""
        return await self._drive(inspecting.read(self._context, key))

    async def contains(self, key: str) -> bool:
        """Return whether a key is in the queue, leased or not."""
        return await self._drive(inspecting.contains(self._context, key))

    async def list(
        self,
        state: State | str | None = None,
        prefix: str | None = None,
        due_from: datetime | None = None,
        due_to: datetime | None = None,
        after: str | None = None,
        limit: int = defaults.PAGE,
    ) -> Page[T]:
        """List the messages in the queue, in due order, a page at a time.

        They have this state, a key that begins with `prefix`, and are due from `due_from` on and
        before `due_to`. `after` is the `next` of the page before.
        """
        return await self._drive(
            listing.list_page(self._context, state, prefix, due_from, due_to, after, limit)
        )

    async def reschedule(self, key: str, due: datetime | timedelta) -> bool:
        """Make a message due at another instant, and return whether there was one.

        It keeps its payload, headers and attempts, but loses its lease, as after an update.
        """
        return await self._drive(rescheduling.reschedule(self._context, key, due))

    async def run_now(self, key: str) -> bool:
        """Make a message due now, as `reschedule` does."""
        return await self._drive(rescheduling.run_now(self._context, key))

    async def drop(self, key: str) -> bool:
        """Delete a message, leased or not, and return whether there was one."""
        return await self._drive(inspecting.drop(self._context, key))

    async def drop_all(self, confirm: str) -> int:
        """Delete every message in the queue; `confirm` must be the queue's own name."""
        return await self._drive(inspecting.drop_all(self._context, confirm))

    async def stats(self) -> QueueStats:
        """Count the messages by state."""
        return await self._drive(inspecting.stats(self._context))

    async def forecast(
        self,
        bucket: timedelta = defaults.FORECAST_BUCKET,
        until: datetime | timedelta = defaults.FORECAST_UNTIL,
    ) -> builtins.list[Bucket]:
        """Count by bucket the messages that fall due until an instant or within a time from now.

        A bucket begins at a multiple of its length since 1970, and the first one contains now.
        """
        return await self._drive(inspecting.forecast(self._context, bucket, until))

    async def buried(
        self, limit: int, after: str | None = None, reason: str | None = None
    ) -> builtins.list[BuriedMessage[T]]:
        """List up to `limit` buried messages, the oldest burial first.

        They begin after the burial with the id `after`, and have the text `reason` in their reason.
        """
        return await self._drive(burials.buried(self._context, limit, after, reason))

    async def revive(
        self,
        key: str,
        due: datetime | timedelta | None = None,
        id: str | None = None,  # noqa: A002 - the name of the field
    ) -> bool:
        """Put a burial of a key back in the queue, unless the key is already in it.

        Without an id, it is the newest burial of the key.
        """
        return await self._drive(burials.revive(self._context, key, due, id))

    async def revive_all(
        self, reason: str | None = None, due: datetime | timedelta | None = None
    ) -> int:
        """Put back the newest burial of every key that is not in the queue, and count them.

        With `reason`, only burials that have this text in their reason go back.
        """
        return await self._drive(burials.revive_all(self._context, reason, due))

    async def delete_buried(self, id: str) -> bool:  # noqa: A002 - the name of the field
        """Delete one burial, and return whether there was one with this id."""
        return await self._drive(burials.delete_buried(self._context, id))

    async def purge_buried(self, before: datetime) -> int:
        """Delete the burials before an instant, and count them."""
        return await self._drive(burials.purge_buried(self._context, before))

    async def history(
        self, limit: int = defaults.PAGE, key: str | None = None
    ) -> builtins.list[Settled]:
        """List up to `limit` settled messages that the history holds, the newest first.

        With a key, list only what became of messages with that key.
        """
        return await self._drive(inspecting.history(self._context, limit, key))

    async def response(self, key: str, timeout: timedelta | float | None = None) -> Response | None:
        """Wait for the response to the message with this key, and return it.

        Return None once the timeout has passed, or when the message was settled without one. Raise
        `NotAnswered` if the message was buried or dropped.
        """
        return await self._drive(responding.response(self._context, key, timeout))

    async def forget_response(self, key: str) -> bool:
        """Delete the response of a key, and return whether there was one."""
        return await self._drive(responding.forget_response(self._context, key))

    def consume(  # noqa: PLR0913 - the options of a consumer
        self,
        handler: AsyncHandler[T],
        *,
        concurrency: int = defaults.CONCURRENCY,
        batch: int = defaults.BATCH,
        backoff: Backoff | None = None,
        max_attempts: int | Default | None = DEFAULT,
        lease: timedelta | None = None,
        timeout: timedelta | None = None,
        retry_on: ExceptionTypes | None = None,
        bury_on: ExceptionTypes = (),
        on_buried: AsyncOnBuried[T] | None = None,
        respond: bool = False,
        keep: timedelta = defaults.KEEP,
    ) -> AsyncConsumer[T]:
        """Hand every message to `handler` as it falls due, on tasks of its own, until stopped.

        The handler is a coroutine function, or another callable that returns an awaitable, such
        as a lambda. A function or method written with a plain `def` is refused with a TypeError.
        """
        check_workers(handler, concurrency, batch)
        self._lifetime.check()
        refuse_borrowed(self._context)
        return AsyncConsumer(
            self._context.for_consumer(consumer_lease_millis(lease), keep_millis(keep)),
            self._perform,
            partial(AsyncDelivery, self._drive),
            self._lifetime,
            handler,
            register=self._consumers.add,
            concurrency=concurrency,
            batch=batch,
            rules=checked_rules(
                backoff,
                max_attempts,
                self._context.max_attempts,
                timeout=timeout,
                retry_on=retry_on,
                bury_on=bury_on,
                respond=respond,
            ),
            on_buried=on_buried,
        )

    @overload
    def handler(
        self, function: Callable[[AsyncDelivery[T]], Awaitable[R]], /
    ) -> BoundHandler[AsyncDelivery[T], Awaitable[R], AsyncConsumer[T]]: ...

    @overload
    def handler(
        self, function: None = None, /, **options: Unpack[ConsumerOptions]
    ) -> Callable[
        [Callable[[AsyncDelivery[T]], Awaitable[R]]],
        BoundHandler[AsyncDelivery[T], Awaitable[R], AsyncConsumer[T]],
    ]: ...

    def handler(
        self,
        function: Callable[[AsyncDelivery[T]], Awaitable[R]] | None = None,
        /,
        **options: Unpack[ConsumerOptions],
    ) -> object:
        """Decorate a function as this queue's handler, with the options of `consume`."""
        return bind(self.consume, function, options, queue=self, opening=self._opening)

    def within(self, connection: object) -> "AsyncQueue[T]":
        """Return this queue inside the caller's own open transaction; it never commits.

        It takes a connection of the store's driver, or an object that holds one, such as a session
        of SQLAlchemy. The connection must lead to the database of this queue.
        """
        self._lifetime.check()
        session, store = self._backend.borrow(connection, self._session, self._context.store)
        return AsyncQueue(self._backend, self._context.borrowed(store), session)

    async def close(self) -> None:
        """Stop its consumers and crons, and give the connections back; closing twice is fine.

        When a handler calls this, its consumer would have to wait for that handler. So the call
        returns at once, and the closing goes on in the background. So does a cancelled closing.
        """
        if not self._lifetime.begin_closing():
            return  # also when a signal handler calls it in the middle of a close
        apart = any(consumer._called_from_within for consumer in list(self._consumers))  # noqa: SLF001 - users need not know it
        await self._lifetime.finish_async(self._end, apart=apart)

    async def _end(self) -> None:
        try:
            for consumer in list(self._consumers):
                await consumer.stop()
        finally:
            self._lifetime.end()
            try:
                await self._cron.close()
                await asyncio.to_thread(self._context.close)
            finally:
                await self._session.close()

    def __repr__(self) -> str:
        return f"<AsyncQueue {self.name!r} at {self._backend.address}>"

    async def _drive(self, flow: Flow[R]) -> R:
        return await drive_async(flow, self._perform)

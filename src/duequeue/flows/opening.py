"""Opening a queue: check every argument first, then make the store ready."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from math import inf
from typing import Any, Generic, TypeAlias, TypedDict, TypeVar

from duequeue.clock import Clock, SystemClock, checked_clock, millis_of
from duequeue.codec import Codec, codec_for
from duequeue.defaults import CONSUMER_LEASE, LEASE, POLL_INTERVAL
from duequeue.drive.actions import Flow, performer, performer_async
from duequeue.drive.retrying import retrying
from duequeue.drive.steps import drive, drive_async
from duequeue.errors import InvalidType, StoreError, StoreUnavailable
from duequeue.events.events import Events
from duequeue.flows.arguments import (
    checked_flag,
    checked_max_attempts,
    checked_retention,
    checked_retry,
)
from duequeue.flows.cleaning import Cleaning
from duequeue.flows.context import Context
from duequeue.flows.group_commit import GroupCommit
from duequeue.instants import positive_millis
from duequeue.message import checked_name
from duequeue.port.alerts import Alert, Answered
from duequeue.port.store import AsyncSession, Backend, Session, Store
from duequeue.process.contact import StoreContact, contact_with
from duequeue.process.shared import Shared
from duequeue.retention import Retention
from duequeue.retry_policy import RetryPolicy
from duequeue.wakeups.awaited import Awaited
from duequeue.wakeups.bell import Bell
from duequeue.wakeups.next_look import NextLook

T = TypeVar("T")

# Returns the store of a queue, with something around it.
Around: TypeAlias = Callable[[Store], Store]


class QueueOptions(TypedDict, total=False):
    """The options of `open`, beside the codec."""

    lease: timedelta | None
    poll_interval: timedelta
    clock: Clock | None
    retry: RetryPolicy | None
    max_attempts: int | None
    migrate: bool
    history: bool
    retention: Retention | None
    response_type: Any
    token: str | None


# The warning about other payload types counts no more messages than this, so that it is cheap.
MOST_COUNTED = 10_000

logger = logging.getLogger("duequeue.opening")

_warned_of: set[tuple[str, str]] = set()
_bells = Shared(Bell)
_next_looks = Shared(NextLook)
_awaited = Shared(Awaited)


@dataclass(frozen=True)
class Opening(Generic[T]):
    """A queue that is about to be opened."""

    backend: Backend
    name: str
    codec: Codec[T]
    clock: Clock
    retry: RetryPolicy
    lease: int
    consumer_lease: int
    poll_interval: int
    max_attempts: int | None
    migrate: bool
    history: bool
    retention: Retention | None
    response_codec: Codec[Any]

    def open(self, around: Around | None = None) -> tuple[Context[T], Session]:
        """Open the queue; the caller closes its session."""
        session = self.backend.session()
        try:
            return _with(around, drive(self.flow(session), performer(session))), session
        except BaseException:
            session.close()
            raise

    async def open_async(self, around: Around | None = None) -> tuple[Context[T], AsyncSession]:
        """Open the queue; the caller closes its session."""
        session = self.backend.async_session()
        try:
            context = await drive_async(self.flow(session), performer_async(session))
            return _with(around, context), session
        except BaseException:
            await session.close()
            raise

    def flow(self, session: Session | AsyncSession) -> Flow[Context[T]]:
        """Make the store ready, for a queue on this session."""
        kind = f"{self.name}|{self.codec.type_name}"
        open_store = partial(
            self.backend.open_store,
            kind,
            self.poll_interval,
            migrate=self.migrate,
            history=self.history,
        )
        contact = contact_with(self.backend.place, self.backend.address)
        store = yield from retrying(self.retry, open_store, try_seconds=inf, contact=contact)
        now = millis_of(self.clock)
        prepare_history = partial(store.prepare_history, now())
        yield from retrying(self.retry, prepare_history, contact=contact)
        yield from self._warn_of_other_types(contact)
        place = (self.backend.place, kind)
        # A queue with a clock of its own must not wait for the looks of other queues.
        clock_name = type(self.clock) if isinstance(self.clock, SystemClock) else id(self.clock)
        bell, next_look = _bells.get(place), _next_looks.get((*place, clock_name))

        awaited = _awaited.get(place)

        def on_alert(alert: Alert) -> None:
            if isinstance(alert, Answered):
                awaited.ring([alert.key])
                return
            if alert is None:
                awaited.ring_all()
            else:
                store.announce(alert)
            bell.ring(alert)

        return Context(
            name=self.name,
            store=store,
            codec=self.codec,
            response_codec=self.response_codec,
            clock=self.clock,
            now=now,
            bell=bell,
            next_look=next_look,
            awaited=awaited,
            events=Events(),
            group_commit=GroupCommit(),
            alerts=self.backend.alerts(session, kind, on_alert),
            contact=contact,
            retry=self.retry,
            lease=self.lease,
            consumer_lease=self.consumer_lease,
            poll_interval=self.poll_interval,
            max_attempts=self.max_attempts,
            cleaning=None if self.retention is None else Cleaning(self.retention),
            keeps_history=self.history,
        )

    def _warn_of_other_types(self, contact: StoreContact) -> Flow[None]:
        """Log once if the name has other payload types, because that is often a mistake."""
        name, own = (self.backend.place, self.name), self.codec.type_name
        if name in _warned_of:
            return
        count = partial(self.backend.count_types, self.name, MOST_COUNTED)
        try:
            types: dict[str, int] = yield from retrying(self.retry, count, contact=contact)
        except StoreUnavailable:
            raise
        except StoreError:
            return  # for example, a login that may offer messages but not read them
        if types.get(own, 0) > 0 and sum(types.values()) == types[own]:
            return  # the others are empty, and may be left over from an old mistake
        if types:
            _warned_of.add(name)
            words = (
                "queue %r has several payload types, which never see each other's messages: %s. "
                "It was opened here with the type %r; if that is not meant, give its codec"
            )
            shown = ", ".join(f"{each!r} with {_live(number)}" for each, number in types.items())
            logger.warning(words, self.name, shown, own)


def _with(around: Around | None, context: Context[T]) -> Context[T]:
    return context if around is None else replace(context, store=around(context.store))


def _live(number: int) -> str:
    if number >= MOST_COUNTED:
        return f"{MOST_COUNTED:,} live messages or more"
    return f"{number:,} live {'message' if number == 1 else 'messages'}"


def checked(  # noqa: PLR0913 - the options of a queue
    backend: Backend,
    name: str,
    *,
    codec: Codec[T] | type[T] | None = None,
    lease: timedelta | None = None,
    poll_interval: timedelta = POLL_INTERVAL,
    clock: Clock | None = None,
    retry: RetryPolicy | None = None,
    max_attempts: int | None = None,
    migrate: bool = True,
    history: bool = False,
    retention: Retention | None = None,
    response_type: Any = None,
) -> Opening[Any]:
    """Check the arguments of `open`.

    Consumers lease for as long as the caller says, and for less if the caller says nothing.
    """
    return Opening(
        backend=backend,
        name=checked_name(name),
        codec=codec_for(codec),
        clock=checked_clock(SystemClock() if clock is None else clock),
        retry=checked_retry(RetryPolicy() if retry is None else retry),
        lease=positive_millis(LEASE if lease is None else lease, "lease"),
        consumer_lease=positive_millis(CONSUMER_LEASE if lease is None else lease, "lease"),
        poll_interval=positive_millis(poll_interval, "poll_interval"),
        max_attempts=checked_max_attempts(max_attempts),
        migrate=checked_flag(migrate, "migrate"),
        history=checked_flag(history, "history"),
        retention=checked_retention(retention),
        response_codec=_response_codec(response_type),
    )


def _response_codec(response_type: Any) -> Codec[Any]:
    try:
        return codec_for(response_type)
    except TypeError as error:
        raise InvalidType("response_type", f"must be a type or a codec; {error}") from None

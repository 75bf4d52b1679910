"""The events of a queue, and its listeners. Without listeners, no event is made."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from threading import Lock
from time import perf_counter
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

from duequeue.errors import DeliveryLost, InvalidType
from duequeue.leased import LeasedMessage
from duequeue.port.store import Record
from duequeue.verdict import Acked, Parked, Released, Verdict

P = ParamSpec("P")
R = TypeVar("R")

logger = logging.getLogger("duequeue")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a queue."""

    queue_name: str


@dataclass(frozen=True, slots=True)
class Offered(Event):
    """Messages were offered together; the fields count them by outcome."""

    created: int
    updated: int
    ignored: int


@dataclass(frozen=True, slots=True)
class Delivered(Event):
    """A message was leased; `lateness` is the time since the instant its producer asked for."""

    key: str
    attempt: int
    lateness: timedelta


@dataclass(frozen=True, slots=True)
class Handled(Event):
    """A handler has ended; without a verdict, it settled the message itself or lost its lease."""

    key: str
    attempt: int
    duration: timedelta
    verdict: Verdict | None
    error: BaseException | None

    @property
    def outcome(self) -> str:
        """What became of the message, that is, acked, released, buried, lost or settled."""
        match self.verdict:
            case Acked():
                return "acked"
            case Released():
                return "released"
            case Parked():
                return "buried"
            case None:
                return "lost" if isinstance(self.error, DeliveryLost) else "settled"


@dataclass(frozen=True, slots=True)
class Buried(Event):
    """A message was buried."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Expired(Event):
    """A message was dropped instead of delivered, because it had expired."""

    key: str


@dataclass(frozen=True, slots=True)
class LeaseLost(Event):
    """A consumer found that it no longer holds the lease of a message it worked on."""

    key: str


@dataclass(frozen=True, slots=True)
class StoreFailed(Event):
    """The store did not serve a consumer, which will try again."""

    error: BaseException


Listener: TypeAlias = Callable[[Event], object]

EndOffering: TypeAlias = Callable[[BaseException | None], None]
EndHandling: TypeAlias = Callable[[Handled | None], None]
# What a handler returned or raised, and what becomes of the message.
ReportOutcome: TypeAlias = Callable[[object, Verdict | None], None]


class Tracing(Protocol):
    """Follows messages from producers to handlers.

    Each method begins a span, and returns a function that ends it.
    """

    def offering(self, records: list[Record]) -> tuple[list[Record], EndOffering]:
        """Return the records with headers that carry the trace, and the function that ends it."""

    def handling(self, message: LeasedMessage[Any]) -> EndHandling:
        """Continue the trace that the message carries, and return the function that ends it."""


class Events:
    """The listeners of one opened queue. Tracing happens only while there are listeners."""

    def __init__(self) -> None:
        self.listeners: tuple[Listener, ...] = ()
        self.tracing: Tracing | None = None
        self._lock = Lock()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event, in the thread where it happens.

        Return a function that unsubscribes it.
        """
        if not callable(listener):
            raise InvalidType("listener", f"must be callable, not {type(listener).__name__}")
        subscribed = partial(listener)  # a distinct object, in case a listener subscribes twice
        with self._lock:
            self.listeners = (*self.listeners, subscribed)

        def unsubscribe() -> None:
            with self._lock:
                self.listeners = tuple(each for each in self.listeners if each is not subscribed)

        return unsubscribe

    def emit(self, event: Event) -> None:
        """Call every listener; log the error of one that raises, and go on."""
        for listener in self.listeners:
            try:
                listener(event)
            except Exception:
                logger.exception("a listener failed: %r", listener)

    @contextmanager
    def offering(self, records: list[Record]) -> Iterator[list[Record]]:
        """Trace an offer; the block stores the records that it is given."""
        begun = None if self.tracing is None else _guarded(self.tracing.offering, records)
        stamped, end = begun or (records, _nothing)
        try:
            yield stamped
        except BaseException as error:
            _guarded(end, error)
            raise
        _guarded(end, None)

    def handling(self, message: LeasedMessage[Any]) -> "HandlerCall":
        """Trace a handler; the block reports how the handler ended."""
        return HandlerCall(self, message)


class HandlerCall:
    """One observed call of a handler; a class, because a generator for each message costs more."""

    __slots__ = ("_began", "_end", "_event", "_events", "_message")

    def __init__(self, events: Events, message: LeasedMessage[Any]) -> None:
        self._events = events
        self._message = message
        self._event: Handled | None = None
        tracing = events.tracing
        self._end = None if tracing is None else _guarded(tracing.handling, message)
        self._began = perf_counter()

    def __enter__(self) -> ReportOutcome:
        return self._report

    def __exit__(self, *raised: object) -> None:
        if self._end is not None:
            _guarded(self._end, self._event)

    def _report(self, outcome: object, verdict: Verdict | None) -> None:
        message = self._message
        self._event = Handled(
            message.queue_name,
            message.key,
            message.attempt,
            timedelta(seconds=perf_counter() - self._began),
            verdict,
            outcome if isinstance(outcome, BaseException) else None,
        )
        self._events.emit(self._event)


def _guarded(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
    """Call code of the user's, whose errors must not fail the queue."""
    try:
        return call(*args, **kwargs)
    except Exception:
        logger.exception("a listener failed: %r", call)
        return None


def _nothing(_: object) -> None:
    pass

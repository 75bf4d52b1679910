"""What happens in a queue, told to whoever listens. Nothing is told while nobody does."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from threading import Lock
from time import perf_counter
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

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
    """Messages were offered together; how many had which outcome."""

    created: int
    updated: int
    ignored: int


@dataclass(frozen=True, slots=True)
class Delivered(Event):
    """A message was leased, so long after the instant its producer asked for."""

    key: str
    attempt: int
    lateness: timedelta


@dataclass(frozen=True, slots=True)
class Handled(Event):
    """A handler has ended; without a verdict it settled the message itself, or lost it."""

    key: str
    attempt: int
    duration: timedelta
    verdict: Verdict | None
    error: BaseException | None

    @property
    def outcome(self) -> str:
        """What becomes of the message: acked, released, buried or settled."""
        match self.verdict:
            case Acked():
                return "acked"
            case Released():
                return "released"
            case Parked():
                return "buried"
            case None:
                return "settled"


@dataclass(frozen=True, slots=True)
class Buried(Event):
    """A message was parked out of the queue."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class LeaseLost(Event):
    """A consumer found that a message it worked on is no longer its own."""

    key: str


@dataclass(frozen=True, slots=True)
class StoreFailed(Event):
    """The store did not serve a consumer, which will try again."""

    error: BaseException


Listener: TypeAlias = Callable[[Event], object]

EndOffering: TypeAlias = Callable[[BaseException | None], None]
EndHandling: TypeAlias = Callable[[Handled | None], None]
# What a handler returned or raised, and what becomes of the message.
Tell: TypeAlias = Callable[[object, Verdict | None], None]


class Tracing(Protocol):
    """Follows messages from producers to handlers. Each method begins, and returns what ends."""

    def offering(self, records: list[Record]) -> tuple[list[Record], EndOffering]:
        """Return the records with headers that lead back to here."""

    def handling(self, message: LeasedMessage[Any]) -> EndHandling:
        """Go on where the message was offered."""


class Events:
    """One opened queue's listeners. Tracing is asked only while there are any."""

    def __init__(self) -> None:
        self.listeners: tuple[Listener, ...] = ()
        self.tracing: Tracing | None = None
        self._lock = Lock()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event, in the thread where it happens; return the undoing."""
        if not callable(listener):
            raise TypeError(f"listener must be callable, not {type(listener).__name__}")
        told = partial(listener)  # of its own, should the same listener subscribe twice
        with self._lock:
            self.listeners = (*self.listeners, told)

        def unsubscribe() -> None:
            with self._lock:
                self.listeners = tuple(each for each in self.listeners if each is not told)

        return unsubscribe

    def emit(self, event: Event) -> None:
        """Tell every listener; one that raises is logged, and disturbs nobody."""
        for listener in self.listeners:
            try:
                listener(event)
            except Exception:
                logger.exception("a listener failed: %r", listener)

    @contextmanager
    def offering(self, records: list[Record]) -> Iterator[list[Record]]:
        """Surround an offer: the records in the block are the ones to store."""
        begun = None if self.tracing is None else _guarded(self.tracing.offering, records)
        stamped, end = begun or (records, _nothing)
        try:
            yield stamped
        except BaseException as error:
            _guarded(end, error)
            raise
        _guarded(end, None)

    def handling(self, message: LeasedMessage[Any]) -> "HandlerCall":
        """Surround a handler: the block is to tell how it ended."""
        return HandlerCall(self, message)


class HandlerCall:
    """One call of a handler that somebody listens to; a class, for it is made for each message."""

    __slots__ = ("_began", "_end", "_event", "_events", "_message")

    def __init__(self, events: Events, message: LeasedMessage[Any]) -> None:
        self._events = events
        self._message = message
        self._event: Handled | None = None
        tracing = events.tracing
        self._end = None if tracing is None else _guarded(tracing.handling, message)
        self._began = perf_counter()

    def __enter__(self) -> Tell:
        return self._tell

    def __exit__(self, *raised: object) -> None:
        if self._end is not None:
            _guarded(self._end, self._event)

    def _tell(self, outcome: object, verdict: Verdict | None) -> None:
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
    """Call what is not ours: it may fail, the queue may not."""
    try:
        return call(*args, **kwargs)
    except Exception:
        logger.exception("a listener failed: %r", call)
        return None


def _nothing(_: object) -> None:
    pass

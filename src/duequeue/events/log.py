"""A listener that writes events as structured log records."""

import logging
from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from typing import Protocol

from duequeue.events.events import (
    Buried,
    Event,
    Events,
    Expired,
    Handled,
    LeaseLost,
    StoreFailed,
)

logger = logging.getLogger("duequeue.events")


class Observable(Protocol):
    """A queue of either face."""

    @property
    def name(self) -> str:
        """The name under which it was opened."""

    @property
    def events(self) -> Events:
        """Its events."""


def log_events(queue: Observable) -> Callable[[], None]:
    """Log the events of a queue to `duequeue.events`; return a function that stops it.

    Ordinary events are logged at DEBUG, failures at INFO. Each record has the event's fields in
    `record.duequeue`.
    """
    return queue.events.subscribe(log_event)


def log_event(event: Event, handled: int = logging.DEBUG) -> None:
    """Log an event; `handled` is the level for messages that were handled without failure."""
    level = _level(event, handled)
    if logger.isEnabledFor(level):
        shown = _fields(event)
        text = " ".join(f"{name}={value!r}" for name, value in shown.items() if name != "event")
        logger.log(level, "%s %s", shown["event"], text, extra={"duequeue": shown})


def _level(event: Event, handled: int) -> int:
    match event:
        case Buried() | Expired() | LeaseLost() | StoreFailed():
            return logging.INFO
        case Handled(error=error) if error is not None:
            return logging.INFO
        case Handled():
            return handled
        case _:
            return logging.DEBUG


def _fields(event: Event) -> dict[str, object]:
    """Return an event as plain values, which any formatter can write."""
    shown: dict[str, object] = {"event": type(event).__name__}
    for field in fields(event):
        if field.name != "verdict":
            shown[field.name] = _plain(getattr(event, field.name))
    if isinstance(event, Handled):
        shown["outcome"] = event.outcome
    return shown


def _plain(value: object) -> object:
    match value:
        case timedelta():
            return value.total_seconds()
        case BaseException():
            return repr(value)
        case _:
            return value

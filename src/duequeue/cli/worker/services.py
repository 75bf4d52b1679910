"""Which handlers a worker serves, each with its queue and its options."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from duequeue.backends import backend_for, is_server
from duequeue.cli.address import URL_VARIABLE
from duequeue.cli.codecs import load_codec
from duequeue.cli.config import load_defaults
from duequeue.cli.handler_path import decorated_in, find, is_async, load
from duequeue.cli.worker.settings import WorkerSettings
from duequeue.consumer.bound_handler import BoundHandler, ConsumerOptions
from duequeue.defaults import BATCH, CONCURRENCY, KEEP, POLL_INTERVAL
from duequeue.errors import InvalidArgument
from duequeue.flows import opening
from duequeue.flows.arguments import (
    DEFAULT,
    check_workers,
    checked_rules,
    consumer_lease_millis,
    keep_millis,
)
from duequeue.instants import positive_millis
from duequeue.message import checked_name
from duequeue.port.store import Backend
from duequeue.queue import Queue


@dataclass(frozen=True)
class ServedHandler:
    """A handler, how its queue is opened, and the options of its consumer.

    A queue that the handler's own module has opened is used as it is, with its listeners.
    """

    function: Callable[..., Any]
    opening: opening.Opening[Any]
    queue: Queue[Any] | None
    options: ConsumerOptions

    @property
    def name(self) -> str:
        """The name of its queue."""
        return self.opening.name

    @property
    def lease(self) -> int:
        """For how many milliseconds it leases."""
        given = consumer_lease_millis(self.options.get("lease"))
        return self.opening.consumer_lease if given is None else given


def find_services(settings: WorkerSettings) -> list[ServedHandler]:
    """Import the handlers, and check everything about them that can be checked without a store."""
    found: dict[int, tuple[str, BoundHandler[Any, Any, Any] | None]] = {}
    for place in settings.handlers:
        if ":" in place:
            each = find(place)
            found[id(each)] = (place, each if isinstance(each, BoundHandler) else None)
        else:
            for name, bound in decorated_in(place).items():
                found.setdefault(id(bound), (f"{place}:{name}", bound))
    for argument, value in (("--queue", settings.queue), ("--codec", settings.codec)):
        if value is not None and len(found) > 1:
            raise InvalidArgument(argument, f"is for a single handler, but there are {len(found)}")
    return [_service(settings, *each) for each in found.values()]


def queue_names(services: list[ServedHandler]) -> str:
    """Return the names of their queues, or how many there are."""
    names = list(dict.fromkeys(service.name for service in services))
    most = 3
    return ", ".join(names) if len(names) <= most else f"{len(names)} queues"


def addresses(services: list[ServedHandler]) -> str:
    """Return where their stores are."""
    return ", ".join(dict.fromkeys(service.opening.backend.address for service in services))


def _service(
    settings: WorkerSettings, place: str, bound: BoundHandler[Any, Any, Any] | None
) -> ServedHandler:
    function = load(place) if bound is None else _innermost(bound)
    own: ConsumerOptions = {} if bound is None else bound.options
    options: ConsumerOptions = {**own, **settings.consuming()}
    known = None if bound is None else bound.opening
    opens = _new_opening(settings, place) if known is None else _changed(settings, known)
    _check(function, options, opens)
    queue = bound.queue if bound is not None and opens is known else None
    if not isinstance(queue, Queue) or is_async(function):
        queue = None
    return ServedHandler(function, opens, queue, options)


def _innermost(bound: BoundHandler[Any, Any, Any]) -> Callable[..., Any]:
    function: Callable[..., Any] = bound.function
    while isinstance(function, BoundHandler):
        function = function.function
    return function


def _check(
    function: Callable[..., Any], options: ConsumerOptions, opens: opening.Opening[Any]
) -> None:
    check_workers(function, options.get("concurrency", CONCURRENCY), options.get("batch", BATCH))
    checked_rules(
        options.get("backoff"),
        options.get("max_attempts", DEFAULT),
        opens.max_attempts,
        timeout=options.get("timeout"),
        retry_on=options.get("retry_on"),
        bury_on=options.get("bury_on", ()),
        respond=options.get("respond", False),
    )
    consumer_lease_millis(options.get("lease"))
    keep_millis(options.get("keep", KEEP))


def _new_opening(settings: WorkerSettings, place: str) -> opening.Opening[Any]:
    """Return how to open the queue of a function that is not decorated."""
    if settings.queue is None:
        raise InvalidArgument(
            "--queue",
            text=f"{place} belongs to no queue: pass --queue, or decorate it with @queue.handler",
        )
    url = settings.url or load_defaults().url
    if url is None:
        raise InvalidArgument(
            "--url",
            text=f"{place} needs the database of its queue: pass --url, or set {URL_VARIABLE}",
        )
    interval = settings.poll_interval
    return opening.checked(
        _backend(url),
        settings.queue,
        codec=None if settings.codec is None else load_codec(settings.codec),
        poll_interval=POLL_INTERVAL if interval is None else interval,
        history=bool(settings.history),
    )


def _backend(url: str) -> Backend:
    """Return the store; a server may need the token of the configuration file."""
    return backend_for(url, load_defaults().token_for(url) if is_server(url) else None)


def _changed(settings: WorkerSettings, known: opening.Opening[Any]) -> opening.Opening[Any]:
    """Return how a decorated handler's queue is opened, changed by what was given."""
    changes: dict[str, Any] = {}
    if settings.url is not None:
        changes["backend"] = _backend(settings.url)
    if settings.queue is not None:
        changes["name"] = checked_name(settings.queue)
    if settings.codec is not None:
        changes["codec"] = load_codec(settings.codec)
    if settings.poll_interval is not None:
        changes["poll_interval"] = positive_millis(settings.poll_interval, "poll_interval")
    if settings.history is not None:
        changes["history"] = settings.history
    return replace(known, **changes) if changes else known

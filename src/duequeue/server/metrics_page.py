"""The page that Prometheus reads; nothing on it waits for the store."""

from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING

from duequeue.callbacks.lane import Lane
from duequeue.clock import millis_of
from duequeue.process.contact import contact_with
from duequeue.server import process_numbers
from duequeue.server.exposition import counter, gauge

if TYPE_CHECKING:
    from duequeue.server.app import Service

ENDPOINT_STATES = ("active", "open", "probing", "throttled", "disabled")


def text(service: "Service") -> str:
    """Write everything that this process knows."""
    return "\n".join([*_lines(service), ""])


def _lines(service: "Service") -> Iterator[str]:
    about = {"version": version("duequeue")}
    yield from gauge("duequeue_build_info", "The version of the server.", [(about, 1)])
    waiting = service.live.waiters
    yield from gauge("duequeue_waiters", "Requests that wait for messages.", [({}, waiting)])
    yield from _store_lines(service)
    yield from service.counting.lines()
    yield from service.meter.lines()
    if service.running_push is not None:
        now = millis_of(service.queues.settings.clock)()
        yield from _endpoint_lines(service.running_push.lanes(), now)
    yield from process_numbers.pool_lines()
    yield from process_numbers.lines()


def _store_lines(service: "Service") -> Iterator[str]:
    contact = contact_with(service.queues.place, service.queues.address)
    available = int(not contact.is_lost)
    yield from gauge("duequeue_store_available", "1, or 0 in an outage.", [({}, available)])
    yield from counter(
        "duequeue_store_failures_total",
        "Tries of calls that failed because the store was unavailable.",
        [({}, contact.failures)],
    )


def _endpoint_lines(lanes: list[Lane], now: int) -> Iterator[str]:
    yield from counter(
        "duequeue_endpoint_calls_total",
        "Callbacks by endpoint and result.",
        (
            ({"endpoint": lane.endpoint.id, "result": result}, number)
            for lane in lanes
            for result, number in lane.calls.items()
        ),
    )
    yield from gauge(
        "duequeue_endpoint_running_calls",
        "Callbacks that run now.",
        (({"endpoint": lane.endpoint.id}, lane.running) for lane in lanes),
    )
    yield from gauge(
        "duequeue_endpoint_state",
        "1 for the state that an endpoint has for this process, such as open for its breaker.",
        (
            ({"endpoint": lane.endpoint.id, "state": state}, int(state == lane.state(now)))
            for lane in lanes
            for state in ENDPOINT_STATES
        ),
    )

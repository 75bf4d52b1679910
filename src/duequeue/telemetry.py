"""Spans and metrics of a queue for OpenTelemetry. This needs the extra `otel`.

A message carries its trace context in its headers, as the configured propagators write it.
"""

from collections.abc import Callable
from typing import Any

from duequeue.errors import InvalidArgument, MissingExtra
from duequeue.events.events import (
    Buried,
    Delivered,
    EndHandling,
    EndOffering,
    Event,
    Handled,
    LeaseLost,
    Offered,
    StoreFailed,
)
from duequeue.events.log import Observable
from duequeue.headers import decode_headers, encode_headers
from duequeue.leased import LeasedMessage
from duequeue.port.store import Record
from duequeue.verdict import is_failure

try:
    from opentelemetry import context, metrics, propagate, trace
    from opentelemetry.trace import SpanKind, Status, StatusCode
except ImportError as error:
    raise MissingExtra(
        "telemetry needs the OpenTelemetry API: pip install 'duequeue[otel]'"
    ) from error

SCOPE = "duequeue"


def instrument(
    queue: Observable,
    *,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> Callable[[], None]:
    """Report spans and metrics of a queue, by default to the global providers.

    This covers `queue.within(…)` and every consumer of this queue object. Return a function that
    undoes it.
    """
    events = queue.events
    if events.tracing is not None:
        raise InvalidArgument(
            "queue", "is already instrumented; first call the function that instrument returned"
        )
    tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
    meter = metrics.get_meter(SCOPE, meter_provider=meter_provider)
    events.tracing = Spans(tracer, queue.name)
    unsubscribe = events.subscribe(Meters(meter))

    def undo() -> None:
        unsubscribe()
        events.tracing = None

    return undo


class Spans:
    """A span for each offer, and one for each handler, which continues the offer's trace."""

    def __init__(self, tracer: trace.Tracer, queue_name: str) -> None:
        self._tracer = tracer
        self._queue_name = queue_name

    def offering(self, records: list[Record]) -> tuple[list[Record], EndOffering]:
        """Begin a producer's span, and add its context to the records' headers."""
        about: dict[str, str | int] = (
            {"messaging.message.id": records[0].key}
            if len(records) == 1
            else {"messaging.batch.message_count": len(records)}
        )
        span, token = self._begin("send", SpanKind.PRODUCER, None, about)
        carrier: dict[str, str] = {}
        propagate.inject(carrier)

        def end(error: BaseException | None) -> None:
            context.detach(token)
            _finish(span, error)

        return [_stamped(record, carrier) for record in records], end

    def handling(self, message: LeasedMessage[Any]) -> EndHandling:
        """Begin a handler's span, as a child of the producer's."""
        came_from = propagate.extract(message.headers)
        about: dict[str, str | int] = {
            "messaging.message.id": message.key,
            "duequeue.attempt": message.attempt,
        }
        span, token = self._begin("process", SpanKind.CONSUMER, came_from, about)

        def end(event: Handled | None) -> None:
            context.detach(token)
            if event is not None:
                span.set_attribute("duequeue.outcome", event.outcome)
            error = None if event is None else event.error
            _finish(span, error if is_failure(error) else None)

        return end

    def _begin(
        self,
        operation: str,
        kind: SpanKind,
        parent: context.Context | None,
        about: dict[str, str | int],
    ) -> tuple[trace.Span, Any]:
        span = self._tracer.start_span(
            f"{operation} {self._queue_name}",
            context=parent,
            kind=kind,
            attributes={
                "messaging.system": "duequeue",
                "messaging.destination.name": self._queue_name,
                "messaging.operation.type": operation,
                **about,
            },
        )
        return span, context.attach(trace.set_span_in_context(span, parent))


class Meters:
    """A listener that turns events into metrics."""

    def __init__(self, meter: metrics.Meter) -> None:
        self._offers = meter.create_counter(
            "duequeue.offers", "{message}", "Messages offered, by outcome"
        )
        self._lateness = meter.create_histogram(
            "duequeue.lateness", "s", "Time from the instant asked for to the delivery"
        )
        self._redeliveries = meter.create_counter(
            "duequeue.redeliveries", "{message}", "Deliveries after a message's first"
        )
        self._handler_time = meter.create_histogram(
            "duequeue.handler.duration", "s", "Duration of handlers, by outcome"
        )
        self._lost = meter.create_counter(
            "duequeue.leases.lost", "{lease}", "Leases that a consumer found to be lost"
        )
        self._buried = meter.create_counter("duequeue.buried", "{message}", "Messages buried")
        self._failures = meter.create_counter(
            "duequeue.store.failures",
            "{failure}",
            "Calls by consumers that the store failed to serve",
        )

    def __call__(self, event: Event) -> None:
        """Measure one event."""
        about = {"messaging.destination.name": event.queue_name}
        match event:
            case Offered(created=created, updated=updated, ignored=ignored):
                counts = {"created": created, "updated": updated, "ignored": ignored}
                for outcome, count in counts.items():
                    if count:
                        self._offers.add(count, {**about, "duequeue.outcome": outcome})
            case Delivered(attempt=1, lateness=lateness):
                self._lateness.record(lateness.total_seconds(), about)
            case Delivered():
                self._redeliveries.add(1, about)
            case Handled(duration=duration, outcome=outcome):
                about["duequeue.outcome"] = outcome
                self._handler_time.record(duration.total_seconds(), about)
            case LeaseLost():
                self._lost.add(1, about)
            case Buried():
                self._buried.add(1, about)
            case StoreFailed():
                self._failures.add(1, about)
            case _:
                pass


def _stamped(record: Record, carrier: dict[str, str]) -> Record:
    """Add a trace context to a record, unless its producer has set one or it does not fit."""
    try:
        headers = encode_headers({**carrier, **decode_headers(record.headers, record.key)})
    except ValueError:
        return record
    return record._replace(headers=headers)


def _finish(span: trace.Span, error: BaseException | None) -> None:
    if error is not None:
        span.record_exception(error)
        span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
    span.end()

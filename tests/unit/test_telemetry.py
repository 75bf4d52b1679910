"""Spans that follow a message, and metrics, as an application's exporters would get them."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    HistogramDataPoint,
    InMemoryMetricReader,
    NumberDataPoint,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from duequeue import AsyncQueue, Bury, Delivery, ManualClock, Message, Queue, Retry
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import SECOND
from duequeue.contract.stage import until
from duequeue.telemetry import instrument


class Observatory:
    """Where spans and metrics arrive."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self._reader = InMemoryMetricReader()
        self.meter_provider = MeterProvider([self._reader])

    def watch(self, queue: Queue[Any] | AsyncQueue[Any]) -> Any:
        return instrument(
            queue, tracer_provider=self.tracer_provider, meter_provider=self.meter_provider
        )

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._spans.get_finished_spans() if span.name == name]

    def await_span(self, name: str) -> ReadableSpan:
        until(lambda: bool(self.spans(name)))
        return self.spans(name)[0]

    def points(self, metric: str) -> list[NumberDataPoint | HistogramDataPoint]:
        data = self._reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for each in scope.metrics
            if each.name == metric
            for point in each.data.data_points
            if isinstance(point, NumberDataPoint | HistogramDataPoint)
        ]

    def total(self, metric: str, **attributes: str) -> float:
        """Add up a counter, or the sum of a histogram."""
        return sum(
            point.value if isinstance(point, NumberDataPoint) else point.sum
            for point in self.points(metric)
            if {f"duequeue.{name}": value for name, value in attributes.items()}.items()
            <= dict(point.attributes or {}).items()
        )


@pytest.fixture
def observatory() -> Iterator[Observatory]:
    made = Observatory()
    yield made
    made.tracer_provider.shutdown()
    made.meter_provider.shutdown()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def queue(clock: ManualClock) -> Iterator[Queue[Any]]:
    with Queue[Any].open("memory:", "orders", clock=clock) as queue:
        yield queue


def about(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_handler_goes_on_where_the_message_was_offered(
    queue: Queue[Any], observatory: Observatory
) -> None:
    observatory.watch(queue)
    seen: list[trace.SpanContext] = []

    def handle(delivery: Delivery[Any]) -> None:
        seen.append(trace.get_current_span().get_span_context())

    with observatory.tracer_provider.get_tracer("test").start_as_current_span("request") as request:
        queue.offer("a", 1, headers={"tenant": "x"})
    with queue.consume(handle):
        process = observatory.await_span("process orders")
    (send,) = observatory.spans("send orders")
    assert send.context is not None
    assert process.context is not None
    assert send.parent == request.get_span_context()
    assert process.parent is not None
    assert process.parent.span_id == send.context.span_id
    assert process.context.trace_id == request.get_span_context().trace_id
    assert [context.span_id for context in seen] == [process.context.span_id]
    assert (send.kind, process.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert about(process) == {
        "messaging.system": "duequeue",
        "messaging.destination.name": "orders",
        "messaging.operation.type": "process",
        "messaging.message.id": "a",
        "duequeue.attempt": 1,
        "duequeue.outcome": "acked",
    }
    assert about(send)["messaging.message.id"] == "a"


def test_on_an_event_loop_too(observatory: Observatory) -> None:
    seen: list[trace.SpanContext] = []

    async def scenario() -> None:
        async with AsyncQueue[Any].open("memory:", "orders") as queue:
            observatory.watch(queue)
            handled = asyncio.Event()

            async def handle(delivery: object) -> None:
                await asyncio.sleep(0)
                seen.append(trace.get_current_span().get_span_context())
                handled.set()

            await queue.offer("a", 1)
            async with queue.consume(handle):
                await handled.wait()

    asyncio.run(scenario())
    process = observatory.await_span("process orders")
    assert process.context is not None
    assert [context.span_id for context in seen] == [process.context.span_id]
    assert process.parent is not None
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_headers_carry_the_trace_beside_the_producers_own(
    queue: Queue[Any], observatory: Observatory
) -> None:
    observatory.watch(queue)
    own = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    queue.offer_batch(
        [Message("a", 1, headers={"tenant": "x"}), Message("b", 1), Message("c", 1, headers=own)]
    )
    a, b, c = (delivery.headers for delivery in queue.try_poll_many(3))
    (send,) = observatory.spans("send orders")
    assert send.context is not None
    assert f"{send.context.span_id:016x}" in b["traceparent"]
    assert a == {"tenant": "x", **b}
    assert c == own
    assert about(send)["messaging.batch.message_count"] == 3


def test_headers_that_leave_no_room_are_stored_as_they_are(
    queue: Queue[Any], observatory: Observatory
) -> None:
    observatory.watch(queue)
    full = {"x": "x" * 8180}
    queue.offer("a", 1, headers=full)
    (delivery,) = queue.try_poll_many(1)
    assert delivery.headers == full


@pytest.mark.parametrize(
    ("raised", "outcome", "status"),
    [
        (LookupError("no such order"), "released", StatusCode.ERROR),
        (Retry(), "released", StatusCode.UNSET),
        (Bury("enough"), "buried", StatusCode.UNSET),
    ],
)
def test_a_failure_shows_in_the_span(
    queue: Queue[Any],
    observatory: Observatory,
    raised: Exception,
    outcome: str,
    status: StatusCode,
) -> None:
    observatory.watch(queue)

    def handle(delivery: Delivery[Any]) -> None:
        raise raised

    queue.offer("a", 1)
    with queue.consume(handle):
        span = observatory.await_span("process orders")
    assert about(span)["duequeue.outcome"] == outcome
    assert span.status.status_code is status
    assert len(span.events) == (status is StatusCode.ERROR)


def test_an_offer_that_fails_shows_in_the_span(queue: Queue[Any], observatory: Observatory) -> None:
    observatory.watch(queue)
    queue.close()
    with pytest.raises(Exception, match="closed"):
        queue.offer("a", 1)
    (send,) = observatory.spans("send orders")
    assert send.status.status_code is StatusCode.ERROR
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_metrics(queue: Queue[Any], observatory: Observatory, clock: ManualClock) -> None:
    observatory.watch(queue)
    queue.offer_batch([Message("a", 1), Message("b", 1), Message("b", 2), Message("a", 1, START)])
    clock.advance(2 * SECOND)
    (a,) = queue.try_poll_many(1)
    a.release()
    handled = {"a": Bury("enough"), "b": None}
    with queue.consume(lambda delivery: handled[delivery.key]):
        until(lambda: queue.stats().total == 0)
    assert observatory.total("duequeue.offers", outcome="created") == 2
    assert observatory.total("duequeue.offers", outcome="updated") == 1
    assert observatory.total("duequeue.offers", outcome="ignored") == 1
    assert observatory.total("duequeue.lateness") == 4.0
    assert observatory.total("duequeue.redeliveries") == 1
    assert observatory.total("duequeue.buried") == 1
    times = observatory.points("duequeue.handler.duration")
    outcomes = {dict(point.attributes or {})["duequeue.outcome"] for point in times}
    assert outcomes == {"acked", "buried"}
    assert all(
        dict(point.attributes or {})["messaging.destination.name"] == "orders"
        for metric in ("duequeue.offers", "duequeue.lateness", "duequeue.buried")
        for point in observatory.points(metric)
    )


def test_a_lost_lease_is_counted(queue: Queue[Any], observatory: Observatory) -> None:
    observatory.watch(queue)
    queue.offer("a", 1)
    with queue.consume(lambda _: queue.drop("a")):
        until(lambda: observatory.total("duequeue.leases.lost") == 1)


def test_it_can_be_undone_and_done_again_but_not_done_twice(
    queue: Queue[Any], observatory: Observatory
) -> None:
    undo = observatory.watch(queue)
    with pytest.raises(ValueError, match="instrumented"):
        observatory.watch(queue)
    undo()
    queue.offer("a", 1)
    assert observatory.spans("send orders") == []
    assert queue.events.listeners == ()
    observatory.watch(queue)


def test_a_queue_does_not_need_opentelemetry() -> None:
    script = """
import sys
sys.modules["opentelemetry"] = None
import duequeue
try:
    import duequeue.telemetry
except duequeue.MissingExtra as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'duequeue[otel]'" in ran.stdout

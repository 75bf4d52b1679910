"""What the server counts, in the text format of Prometheus, without any key or payload."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from time import monotonic

from duequeue.errors import DueQueueError
from duequeue.instants import to_millis
from duequeue.leased import LeasedMessage
from duequeue.message import OfferOutcome, QueueStats
from duequeue.server.live import Live
from duequeue.server.queues import OpenQueue, Queues

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
# Counting a large queue is expensive, so scrapes within this time get the same counts.
COUNT_EVERY_SECONDS = 10.0


class Histogram:
    """How often values were in which range."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(BOUNDS, value)] += 1
        self._sum += value

    def lines(self, name: str, labels: str) -> Iterator[str]:
        """Write the counts."""
        total = 0
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{{labels},le="{bound}"}} {total}'
        yield f"{name}_sum{{{labels}}} {self._sum:.6f}"
        yield f"{name}_count{{{labels}}} {total}"


class Meter:
    """Counts of one server process."""

    def __init__(self) -> None:
        self._offers: Counter[tuple[str, str]] = Counter()
        self._deliveries: Counter[str] = Counter()
        self._settlements: Counter[tuple[str, str]] = Counter()
        self._lateness: defaultdict[str, Histogram] = defaultdict(Histogram)
        self._requests: defaultdict[tuple[str, str, int], Histogram] = defaultdict(Histogram)
        self._stats: dict[str, tuple[str, QueueStats]] = {}
        self._counted_at = float("-inf")

    def offered(self, queue: str, outcomes: Iterable[OfferOutcome]) -> None:
        """Count offers."""
        for outcome in outcomes:
            self._offers[queue, outcome.value] += 1

    def delivered(self, queue: str, messages: Sequence[LeasedMessage[bytes]]) -> None:
        """Count deliveries, and how late they were."""
        if messages:
            self._deliveries[queue] += len(messages)
            lateness = self._lateness[queue]
            for message in messages:
                lateness.add(max(0, message.lease.delivered_at - message.due_millis) / 1000)

    def settled(self, queue: str, outcome: str, number: int) -> None:
        """Count settlements."""
        if number:
            self._settlements[queue, outcome] += number

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests[method, route, status].add(seconds)

    async def text(self, queues: Queues, live: Live) -> str:
        """Write everything."""
        await self._count(queues)
        return "\n".join([*self._lines(live), ""])

    async def _count(self, queues: Queues) -> None:
        if monotonic() < self._counted_at + COUNT_EVERY_SECONDS:
            return
        self._counted_at = monotonic()
        counted: dict[str, tuple[str, QueueStats]] = {}
        for queue in queues.opened:
            try:
                counted[queue.kind] = (_labels_of(queue), await queue.queue.stats())
            except DueQueueError:
                continue  # the readiness check reports it
        self._stats = counted  # at once, because other requests read it meanwhile

    def _lines(self, live: Live) -> Iterator[str]:
        yield "# TYPE duequeue_build_info gauge"
        yield f'duequeue_build_info{{version="{version("duequeue")}"}} 1'
        yield "# TYPE duequeue_waiters gauge"
        yield f"duequeue_waiters {live.waiters}"
        yield from self._gauges()
        yield from _counters("duequeue_offers_total", self._offers)
        yield "# TYPE duequeue_deliveries_total counter"
        for queue, number in self._deliveries.items():
            yield f'duequeue_deliveries_total{{queue="{_escaped(queue)}"}} {number}'
        yield from _counters("duequeue_settlements_total", self._settlements)
        yield "# TYPE duequeue_lateness_seconds histogram"
        for queue, lateness in self._lateness.items():
            yield from lateness.lines("duequeue_lateness_seconds", f'queue="{_escaped(queue)}"')
        yield "# TYPE duequeue_http_request_duration_seconds histogram"
        for (method, route, status), times in self._requests.items():
            labels = f'method="{method}",route="{route}",code="{status}"'
            yield from times.lines("duequeue_http_request_duration_seconds", labels)

    def _gauges(self) -> Iterator[str]:
        yield "# TYPE duequeue_messages gauge"
        for labels, stats in self._stats.values():
            for state in ("future", "due", "leased", "buried"):
                yield f'duequeue_messages{{{labels},state="{state}"}} {getattr(stats, state)}'
        for name, field in (
            ("duequeue_oldest_due_timestamp_seconds", "oldest_due_at"),
            ("duequeue_next_due_timestamp_seconds", "next_due_at"),
        ):
            yield f"# TYPE {name} gauge"
            for labels, stats in self._stats.values():
                if (instant := getattr(stats, field)) is not None:
                    yield f"{name}{{{labels}}} {to_millis(instant) / 1000:.3f}"


def _counters(name: str, counts: Counter[tuple[str, str]]) -> Iterator[str]:
    yield f"# TYPE {name} counter"
    for (queue, outcome), number in counts.items():
        yield f'{name}{{queue="{_escaped(queue)}",outcome="{outcome}"}} {number}'


def _labels_of(queue: OpenQueue) -> str:
    return f'queue="{_escaped(queue.name)}",type="{_escaped(queue.type_name)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

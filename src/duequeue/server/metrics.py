"""What one server process counts of its queues and requests, without any key or payload."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from duequeue.message import OfferOutcome
from duequeue.port.store import Burial, Claimed, Store
from duequeue.server.exposition import Histogram, Labels, Sample, counter, histogram
from duequeue.server.metered_store import metered

# Queues beyond the limit, and methods that no route has, are counted under this name.
OTHER = "other"
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
# How the reasons of burials begin that are no failure of a handler.
_CAUSES = ("max_attempts", "undecodable payload", "damaged row")


class QueueTally:
    """Counts of one queue."""

    def __init__(self) -> None:
        self.offers: Counter[str] = Counter()
        self.deliveries = 0
        self.settlements: Counter[str] = Counter()
        self.burials: Counter[str] = Counter()
        self.lateness = Histogram()


class Meter:
    """Counts of one server process; at most so many queues have counts of their own."""

    def __init__(self, most_queues: int) -> None:
        self._most = most_queues
        self._tallies: dict[str, QueueTally] = {}
        self._requests: defaultdict[tuple[str, str, int], Histogram] = defaultdict(Histogram)

    def metered(self, queue: str, store: Store) -> Store:
        """Return a store that counts here what is done with the messages of a queue."""
        return metered(store, queue, self)

    def forget(self, queue: str) -> None:
        """Drop the counts of a queue that was closed, to make room for others."""
        self._tallies.pop(queue, None)

    def offered(self, queue: str, outcomes: Iterable[OfferOutcome]) -> None:
        """Count offers."""
        self._tally(queue).offers.update(outcome.value for outcome in outcomes)

    def delivered(self, queue: str, claimed: Sequence[Claimed], now: int) -> None:
        """Count deliveries, and how late they were."""
        tally = self._tally(queue)
        for each in claimed:
            if each.expires_at is None or each.expires_at > now:
                tally.deliveries += 1
                if each.attempt == 1:  # a retry is late because of its handler
                    tally.lateness.add(max(0, now - each.asked_at) / 1000)

    def settled(self, queue: str, outcome: str, number: int, won: int) -> None:
        """Count settlements, of which some came too late."""
        settlements = self._tally(queue).settlements
        if won:
            settlements[outcome] += won
        if won < number:
            settlements["lost"] += number - won

    def buried(self, queue: str, burials: Sequence[Burial], won: set[int]) -> None:
        """Count burials by cause."""
        self.settled(queue, "buried", len(burials), len(won))
        causes = (_cause(each.reason) for each in burials if each.lease.id in won)
        self._tally(queue).burials.update(causes)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests[method if method in _METHODS else OTHER, route, status].add(seconds)

    def lines(self) -> Iterator[str]:
        """Write all counts."""
        yield from counter(
            "duequeue_offers_total",
            "Offered messages by outcome.",
            self._by_label("outcome", "offers"),
        )
        yield from counter(
            "duequeue_deliveries_total",
            "Messages that were leased, also by callbacks.",
            (({"queue": queue}, tally.deliveries) for queue, tally in self._tallies.items()),
        )
        yield from counter(
            "duequeue_settlements_total",
            "Ends of leases by outcome; a lost one came too late, because the lease was gone.",
            self._by_label("outcome", "settlements"),
        )
        yield from counter(
            "duequeue_burials_total",
            "Buried messages by cause.",
            self._by_label("cause", "burials"),
        )
        yield from histogram(
            "duequeue_lateness_seconds",
            "How long after its due time a message was delivered for the first time.",
            (({"queue": queue}, tally.lateness) for queue, tally in self._tallies.items()),
        )
        yield from histogram(
            "duequeue_http_request_duration_seconds",
            "How long requests took; 499 means that the client went away.",
            (
                ({"method": method, "route": route, "code": str(status)}, times)
                for (method, route, status), times in self._requests.items()
            ),
        )

    def _by_label(self, label: str, field: str) -> Iterator[Sample]:
        for queue, tally in self._tallies.items():
            for value, number in getattr(tally, field).items():
                labels: Labels = {"queue": queue, label: value}
                yield labels, number

    def _tally(self, queue: str) -> QueueTally:
        found = self._tallies.get(queue)
        if found is None:
            name = queue if len(self._tallies) < self._most else OTHER
            found = self._tallies.setdefault(name, QueueTally())
        return found


def _cause(reason: str) -> str:
    for cause in _CAUSES:
        if reason.startswith(cause):
            return cause.replace(" ", "_")
    return "request"

"""A store that counts what is done with its messages, whoever does it.

The JSON routes, clients in Python and callbacks all go through it. An operation whose steps have
ended counts, even if its commit then fails and it is tried again.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from duequeue.message import OfferOutcome
from duequeue.port.store import Answer, Burial, Claimed, Expiry, Lease, Release, Steps, Store

if TYPE_CHECKING:
    from duequeue.server.metrics import Meter


def metered(store: Store, queue: str, meter: "Meter") -> Store:
    """Return the store with a meter on it."""
    return cast("Store", _MeteredStore(store, queue, meter))


class _MeteredStore:
    def __init__(self, store: Store, queue: str, meter: "Meter") -> None:
        self._store = store
        self._queue = queue
        self._meter = meter

    def __getattr__(self, name: str) -> Any:
        """Do everything else as the store does it."""
        return getattr(self._store, name)

    def offer(self, records: Any, now: int, **options: Any) -> Steps[list[OfferOutcome]]:
        outcomes = yield from self._store.offer(records, now, **options)
        self._meter.offered(self._queue, outcomes)
        return outcomes

    def claim(self, limit: int, now: int, until: int, token: int) -> Steps[list[Claimed]]:
        claimed = yield from self._store.claim(limit, now, until, token)
        if claimed:
            self._meter.delivered(self._queue, claimed, now)
        return claimed

    def ack(self, leases: Sequence[Lease], now: int) -> Steps[set[int]]:
        return (yield from self._count("acked", leases, self._store.ack(leases, now)))

    def answer(self, answers: Sequence[Answer], now: int, **sender: Any) -> Steps[set[int]]:
        steps = self._store.answer(answers, now, **sender)
        return (yield from self._count("acked", answers, steps))

    def expire(self, expiries: Sequence[Expiry], now: int) -> Steps[set[int]]:
        return (yield from self._count("expired", expiries, self._store.expire(expiries, now)))

    def release(self, releases: Sequence[Release]) -> Steps[set[int]]:
        return (yield from self._count("released", releases, self._store.release(releases)))

    def give_back(self, leases: Sequence[Lease]) -> Steps[set[int]]:
        return (yield from self._count("given_back", leases, self._store.give_back(leases)))

    def bury(self, burials: Sequence[Burial], now: int, **sender: Any) -> Steps[set[int]]:
        won = yield from self._store.bury(burials, now, **sender)
        self._meter.buried(self._queue, burials, won)
        return won

    def _count(
        self, outcome: str, each: Sequence[object], steps: Steps[set[int]]
    ) -> Steps[set[int]]:
        won = yield from steps
        self._meter.settled(self._queue, outcome, len(each), len(won))
        return won

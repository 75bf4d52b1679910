"""What the other processes do: calls that can be pickled, on clocks that stand still."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from duequeue import ManualClock, Message, OfferOutcome, Queue
from tests.fixtures.stores import START


def open_queue(url: str, now: datetime = START, **options: Any) -> Queue[Any]:
    """Open the queue that every part plays on."""
    return Queue.open(url, "orders", clock=ManualClock(now), **options)


def open_and_offer(url: str, key: str) -> OfferOutcome:
    """Open, which may mean to create the tables, and leave a trace."""
    with open_queue(url) as queue:
        return queue.offer(key, key)


def offer_new(url: str, keys: Iterable[str], payload: str) -> list[OfferOutcome]:
    """Offer a batch of which nothing may replace what is stored."""
    with open_queue(url) as queue:
        return queue.offer_batch([Message(key, payload, replace=False) for key in keys])


def drain(url: str, limit: int) -> list[list[tuple[str, int]]]:
    """Claim until nothing is left; return the keys and attempts of each claim."""
    with open_queue(url) as queue:
        return claim_all(queue, limit)


def claim_all(queue: Queue[Any], limit: int) -> list[list[tuple[str, int]]]:
    """Claim until nothing is left; return the keys and attempts of each claim."""
    claims = []
    while deliveries := queue.try_poll_many(limit):
        claims.append([(delivery.key, delivery.attempt) for delivery in deliveries])
    return claims


def offer_poll_ack(url: str, name: str, rounds: int) -> int:
    """Offer and consume one by one, whosever message it is; return how many were acked."""
    acked = 0
    with open_queue(url) as queue:
        for number in range(rounds):
            assert queue.offer(f"{name}-{number}", number) is OfferOutcome.CREATED
            delivery = queue.try_poll()
            assert delivery is not None
            acked += delivery.ack()
    return acked

"""What the other processes do: calls that can be pickled, on clocks that stand still."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import count
from typing import Any, NoReturn

from duequeue import ManualClock, Message, OfferOutcome, RetryPolicy
from duequeue.contract.faces import DeliveryFace, QueueFace, SyncFace
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import DAY
from duequeue.flows.chunking import CHUNK_MESSAGES
from tests.race.worker import tell

FAIR_LOOKS = 100


def open_queue(url: str, now: datetime = START, **options: Any) -> QueueFace:
    """Open the queue that every part plays on."""
    return SyncFace().open(url, "orders", clock=ManualClock(now), **options)


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


def claim_all(queue: QueueFace, limit: int) -> list[list[tuple[str, int]]]:
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
            acked += claim_one(queue).ack()
    return acked


def claim_one(queue: QueueFace) -> DeliveryFace:
    """Claim one of at least as many messages as there are claimers.

    A look can miss them all: it skips the one it saw when another claims that at the moment,
    and has not yet seen what the other offered before. So a few looks are fair, many are not.
    """
    for _ in range(FAIR_LOOKS):
        if (delivery := queue.try_poll()) is not None:
            return delivery
    raise AssertionError(f"{FAIR_LOOKS} looks found none of the due messages")


def offer_endlessly(url: str) -> NoReturn:
    """Offer whole chunks and tell how many messages that makes, until killed."""
    with open_queue(url) as queue:
        for offered in count(CHUNK_MESSAGES, CHUNK_MESSAGES):
            keys = range(offered - CHUNK_MESSAGES, offered)
            queue.offer_batch([Message(str(key), key) for key in keys])
            tell(offered)
    raise AssertionError("count ended")


def consume(url: str) -> None:
    """Claim some, ack one of them, and tell which, until killed."""
    with open_queue(url) as queue:
        while deliveries := queue.try_poll_many(7):
            acked, *held = deliveries
            assert acked.ack()
            tell((acked.key, [delivery.key for delivery in held]))


class TellingPolicy(RetryPolicy):
    """Tells when it makes somebody wait, which is for an hour."""

    def pauses(self, seconds: float | None = None) -> Iterator[float]:  # noqa: ARG002 - it does not matter here
        tell("pausing")
        yield 3600.0


def offer_twice(queue: QueueFace) -> None:
    """Offer a batch that takes a transaction of two statements; the second is for key `a`."""
    queue.offer_batch([Message("b", 1), Message("b", 2), Message("a", 2)])


def offer_one(queue: QueueFace) -> None:
    """Offer for key `a`."""
    queue.offer("a", 2)


def poll_for_ever(queue: QueueFace) -> None:
    """Wait for a message that never comes."""
    queue.poll()


def interrupted(
    url: str, action: Callable[[QueueFace], None], options: Mapping[str, Any]
) -> OfferOutcome:
    """Act until interrupted, tell of it, and show that the same queue still works."""
    with open_queue(url, **options) as queue:
        try:
            tell("acting")
            action(queue)
        except KeyboardInterrupt:
            tell("interrupted")
        return queue.offer("afterwards", 1, DAY)

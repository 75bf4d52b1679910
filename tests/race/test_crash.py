"""A process is killed in the middle of its work: what it was told stays, what it held returns."""

from functools import partial

from duequeue import ManualClock, Message
from duequeue.contract.faces import DeliveryFace
from duequeue.contract.phrases import DEFAULT_LEASE, MILLISECOND
from duequeue.flows.chunking import CHUNK_MESSAGES
from tests.race.conftest import OpenRival
from tests.race.crew import Hand
from tests.race.parts import consume, offer_endlessly

KEYS = {f"order-{number:04}" for number in range(1500)}
EVERYTHING = 1_000_000


def test_killed_while_offering(open_rival: OpenRival, store_url: str, hand: Hand) -> None:
    queue = open_rival()
    hand.start(partial(offer_endlessly, store_url))
    known = max(hand.heard() for _ in range(3))
    hand.kill()
    stored = len(queue.try_poll_many(EVERYTHING))
    assert stored >= known
    assert stored % CHUNK_MESSAGES == 0  # a chunk is there as a whole or not at all


def test_killed_while_consuming(
    open_rival: OpenRival, store_url: str, hand: Hand, clock: ManualClock
) -> None:
    queue = open_rival()
    queue.offer_batch([Message(key, 1) for key in KEYS])
    hand.start(partial(consume, store_url))
    told = [hand.heard() for _ in range(3)]
    told += hand.last_words()
    acked = {one for one, _ in told}
    held = {key for _, keys in told for key in keys}

    clock.advance(DEFAULT_LEASE - MILLISECOND)
    early = queue.try_poll_many(EVERYTHING)
    assert held.isdisjoint(delivery.key for delivery in early)
    assert queue.ack_many(early) == len(early)
    clock.advance(MILLISECOND)
    late: list[DeliveryFace] = []
    while not held <= {delivery.key for delivery in late}:
        late += queue.try_poll_many(EVERYTHING)
    assert all(delivery.redelivered for delivery in late if delivery.key in held)
    gone = KEYS - {delivery.key for delivery in early + late}
    assert acked <= gone
    assert len(gone - acked) <= 1  # an ack that the process did not live to tell of

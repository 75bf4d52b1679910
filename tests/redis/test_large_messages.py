"""A claim has at most 16 MiB, so that it does not keep the others waiting."""

from collections.abc import Callable
from functools import partial

import pytest

from duequeue import Message
from duequeue.contract.faces import Face, QueueFace
from duequeue.contract.stage import until
from duequeue.stores.redis.commands import MOST_BYTES
from tests.fixtures.redis_server import RedisServer
from tests.race.crew import Hand
from tests.redis.waiting import LISTENERS, offer_in_silence, poll_once

SIZE = 30_000
MANY = MOST_BYTES // SIZE + 50


def offer_one_by_one(queue: QueueFace, messages: list[Message[str]]) -> None:
    for message in messages:
        queue.offer(message.key, message.payload)


def offer_all(queue: QueueFace, messages: list[Message[str]]) -> None:
    queue.offer_batch(messages)


def offer_and_revive(queue: QueueFace, messages: list[Message[str]]) -> None:
    queue.offer_batch(messages)
    while found := queue.try_poll_many(MANY):
        for delivery in found:
            delivery.bury("why")
    queue.drop_all("orders")  # which forgets that there were large messages
    assert queue.revive_all() == MANY


@pytest.mark.parametrize("offer", [offer_one_by_one, offer_all, offer_and_revive])
def test_a_claim_of_many_messages_has_at_most_16_mib(
    face: Face, redis_url: str, offer: Callable[[QueueFace, list[Message[str]]], None]
) -> None:
    with face.open(redis_url, "orders") as queue:
        offer(queue, [Message(str(number), "x" * SIZE) for number in range(MANY)])
        first = queue.try_poll_many(MANY)
        assert 0.9 * MOST_BYTES < SIZE * len(first) < MOST_BYTES
        assert len(first) + len(queue.try_poll_many(MANY)) == MANY


def test_what_did_not_fit_wakes_another_process(
    face: Face, redis_server: RedisServer, redis_url: str
) -> None:
    hand = Hand()
    try:
        with (
            redis_server.client(int(redis_url.rpartition("/")[2])) as client,
            face.open(redis_url, "orders") as queue,
        ):
            hand.start(partial(poll_once, redis_url))
            until(lambda: client.scard(LISTENERS) == 1)
            for key in "abc":
                offer_in_silence(redis_url, key, b'"%s"' % (b"x" * 6_000_000))
            assert [each.key for each in queue.try_poll_many(10)] == ["a", "b"]
        assert hand.outcome().value == "c"
    finally:
        hand.end()

"""One queue in several shards: what it promises across them, and where they are."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from duequeue import ManualClock, Message, Queue, StoreError
from duequeue.contract.faces import Face
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import MINUTE, PATIENCE, in_background
from duequeue.port.store import Steps
from duequeue.stores.redis.shards import tags
from duequeue.stores.redis.side_by_side import side_by_side
from duequeue.stores.redis_client.servers import SLOTS, slot_of
from tests.fixtures.redis_cluster import RedisCluster
from tests.race.crew import Hand
from tests.redis.test_cluster import offer_to

SECOND = timedelta(seconds=1)
MANY = 200


@pytest.fixture
def store_url(redis_url: str) -> str:
    """An empty database, in which each queue has eight shards."""
    return f"{redis_url}?shards=8"


@pytest.fixture
def queue(open_queue: OpenQueue) -> Any:
    """A queue with many messages, each due at its own time, all of them by now."""
    queue: Any = open_queue()
    offered = [Message(f"{number:03}", number, START - number * SECOND) for number in range(MANY)]
    queue.offer_batch(offered)
    return queue


def in_due_order() -> list[str]:
    return [f"{number:03}" for number in reversed(range(MANY))]


@pytest.mark.parametrize("limit", [1, 7, 64, MANY + 1])
def test_polls_take_what_is_due_first_over_all_shards(queue: Any, limit: int) -> None:
    keys: list[str] = []
    while found := queue.try_poll_many(limit):
        keys += [delivery.key for delivery in found]
        assert queue.ack_many(found) == len(found)
    assert keys == in_due_order()
    assert queue.stats().total == 0


def test_if_one_shard_fails_the_others_end_before_the_error_is_handled() -> None:
    ended: list[str] = []

    def operation(name: str) -> Steps[None]:
        try:
            yield name
        finally:
            ended.append(name)

    steps = side_by_side([operation("a"), operation("b")])
    next(steps)
    with pytest.raises(ConnectionResetError):
        steps.throw(ConnectionResetError())
    assert ended == ["a", "b"]


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_pages_of_a_list_are_merged(queue: Any, limit: int) -> None:
    page = queue.list(limit=limit)
    keys = [message.key for message in page.messages]
    while page.next is not None:
        page = queue.list(limit=limit, after=page.next)
        keys += [message.key for message in page.messages]
    assert keys == in_due_order()


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_burials_are_merged_and_revived(queue: Any, clock: ManualClock, limit: int) -> None:
    for delivery in queue.try_poll_many(40):
        clock.advance(SECOND)
        assert delivery.bury("broken")
    keys: list[str] = []
    after = None
    while found := queue.buried(limit, after=after):
        keys += [burial.key for burial in found]
        after = found[-1].id
    assert keys == in_due_order()[:40]
    assert queue.revive_all(reason="broken") == 40
    assert (queue.stats().buried, queue.stats().total) == (0, MANY)


def test_counts_are_added_up(queue: Any, clock: ManualClock) -> None:
    queue.offer("later", 1, START + MINUTE)
    queue.try_poll_many(10)
    stats = queue.stats()
    assert (stats.due, stats.leased, stats.future, stats.total) == (MANY - 10, 10, 1, MANY + 1)
    assert stats.oldest_due_at == START - (MANY - 11) * SECOND
    assert stats.next_due_at == START + MINUTE


def test_the_number_of_shards_cannot_change(face: Face, queue: Any, redis_url: str) -> None:
    for options in ("?shards=4", ""):
        with pytest.raises(StoreError, match="'orders' is divided into 8 shards, but the url says"):
            face.open(f"{redis_url}{options}", "orders")


def test_a_queue_without_shards_stays_so(face: Face, redis_url: str) -> None:
    face.open(redis_url, "orders").close()
    with pytest.raises(StoreError, match="divided into 1 shards, but the url says 8"):
        face.open(f"{redis_url}?shards=8", "orders")


def test_what_needs_one_slot_is_refused(face: Face, queue: Any, store_url: str) -> None:
    with pytest.raises(StoreError, match="history=True is not possible with shards"):
        face.open(store_url, "orders", history=True)


@pytest.mark.parametrize("shards", [2, 3, 16, 256])
def test_slots_are_spread_evenly(shards: int) -> None:
    for kind in ("orders|json", "{}|json"):
        places = [slot_of(f"dq:{{{tag}}}:waiting") * shards // SLOTS for tag in tags(kind, shards)]
        assert places == list(range(shards))


@pytest.fixture
def hand() -> Iterator[Hand]:
    hand = Hand()
    yield hand
    hand.end()


def test_a_queue_is_spread_over_a_cluster(face: Face, redis_cluster: RedisCluster) -> None:
    redis_cluster.flush()
    url = f"{redis_cluster.url()}?shards=6"
    with face.open(url, "orders") as opened:
        queue: Any = opened
        queue.offer_batch([Message(f"{number:03}", number) for number in range(MANY)])
        sizes = Counter(
            {
                node.port: sum(node.ask("HLEN", key) for key in node.ask("KEYS", "dq:*:messages"))
                for node in redis_cluster.primaries
            }
        )
        assert sum(sizes.values()) == MANY
        assert min(sizes.values()) > MANY // 6
        found = queue.try_poll_many(MANY)
        assert queue.ack_many(found) == MANY


def test_a_poll_on_a_cluster_is_woken_by_another_process(
    face: Face, redis_cluster: RedisCluster, hand: Hand
) -> None:
    redis_cluster.flush()
    url = f"{redis_cluster.url()}?shards=6"
    with face.open(url, "orders", poll_interval=10 * MINUTE) as queue:
        for key in "abcd":
            polling = in_background(queue.poll)
            hand.start(partial(offer_to, url, "orders", key))
            assert hand.outcome().error is None
            delivery = polling.result(PATIENCE)
            assert delivery is not None
            assert delivery.ack()


def test_the_types_of_a_name_are_counted_over_all_shards(
    redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"{redis_url}?shards=4"
    with Queue.open(url, "names") as queue:
        queue.offer_batch([Message(f"{number}", number) for number in range(9)])
    with Queue.open(url, "names", codec=str):
        pass
    assert any("names" in record.message and "9" in record.message for record in caplog.records)

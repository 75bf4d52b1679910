"""One queue in several shards: what it promises across them, and where they are."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from duequeue import AsyncQueue, ManualClock, Message, Queue, StoreError
from duequeue.contract.faces import Face
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import DAY, MINUTE, PATIENCE, in_background
from duequeue.contract.stage import until
from duequeue.port.store import Claimed, Record, Steps, Store
from duequeue.stores.redis.keys import shards_of, tags
from duequeue.stores.redis_client.settings import SLOTS, slot_of
from duequeue.stores.shards import shard_of, side_by_side
from tests.fixtures.redis_cluster import RedisCluster
from tests.fixtures.redis_server import RedisServer
from tests.race.crew import Hand
from tests.redis.test_cluster import offer_to
from tests.redis.waiting import KIND, offer_in_silence, opened_store, poll_once

SECOND = timedelta(seconds=1)
MANY = 200
SHARDS = 8


@pytest.fixture
def store_url(redis_url: str) -> str:
    """An empty database, in which each queue has eight shards."""
    return f"{redis_url}?shards={SHARDS}"


@pytest.fixture
def client(redis_server: RedisServer, redis_url: str) -> Iterator[Any]:
    with redis_server.client(int(redis_url.rpartition("/")[2])) as client:
        yield client


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


def claimed_while(store: Store, happens: Callable[[], object]) -> Steps[list[Claimed]]:
    """Claim a message; after the look at all shards, and before the claim, something happens."""
    steps = store.claim(1, 9, 10, token=10)
    reply = yield next(steps)
    happens()
    try:
        while True:
            reply = yield steps.send(reply)
    except StopIteration as done:
        claimed: list[Claimed] = done.value
        return claimed


FIRST, OTHER = "a", "b"
IN_TWO_SHARDS = [Record(FIRST, b"1", 1), Record(OTHER, b"1", 2)]

assert shard_of(FIRST, SHARDS) != shard_of(OTHER, SHARDS)


def test_a_poll_that_is_overtaken_in_one_shard_looks_at_the_others(store_url: str) -> None:
    with opened_store(store_url) as (store, session):
        session.run(partial(store.offer, IN_TWO_SHARDS, 9))

        def overtake() -> None:
            assert len(session.run(partial(store.claim, 1, 9, 10, token=20))) == 1

        (found,) = session.run(partial(claimed_while, store, overtake))
        assert found.key == OTHER


def test_a_poll_that_finds_too_many_after_none_gives_back_what_is_due_later(
    store_url: str,
) -> None:
    with opened_store(store_url) as (store, session):

        def offer() -> None:
            session.run(partial(store.offer, IN_TWO_SHARDS, 9))

        (found,) = session.run(partial(claimed_while, store, offer))
        assert found.key == FIRST
        (given_back,) = session.run(partial(store.claim, 9, 9, 10, token=20))
        assert (given_back.key, given_back.attempt) == (OTHER, 1)


def size_of_all(client: Any, command: str, name: str) -> int:
    """Return how many members this key has in all shards together."""
    keys = [keys.named(name) for keys in shards_of(KIND, SHARDS)]
    return sum(client.execute_command(command, key) for key in keys)


def test_a_cancelled_poll_gives_back_what_it_has_leased_in_any_shard(
    store_url: str, client: Any
) -> None:
    async def scenario() -> None:
        async with AsyncQueue.open(store_url, "orders", lease=DAY) as queue:
            await queue.offer_batch([Message(str(number), 1) for number in range(20)])
            claiming = asyncio.create_task(queue.try_poll_many(20))
            for _ in iter(lambda: size_of_all(client, "ZCARD", "leased") > 0, True):
                await asyncio.sleep(0)
            claiming.cancel()
            await asyncio.wait([claiming])
            assert claiming.cancelled()
            stats = await queue.stats()
            assert (stats.due, stats.leased) == (20, 0)

    asyncio.run(scenario())


def test_a_poll_wakes_another_process_for_what_it_leaves_in_other_shards(
    store_url: str, client: Any, hand: Hand
) -> None:
    hand.start(partial(poll_once, store_url))
    until(lambda: size_of_all(client, "SCARD", "listeners") == SHARDS)
    with Queue.open(store_url, "orders") as queue:
        for key in "ab":
            offer_in_silence(store_url, key)
        taken = queue.try_poll()
        assert taken is not None
        assert {taken.key, hand.outcome().value} == {"a", "b"}


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


def test_a_batch_follows_a_shard_that_has_moved_to_the_node_of_others(
    face: Face, redis_cluster: RedisCluster
) -> None:
    redis_cluster.flush()
    with face.open(f"{redis_cluster.url()}?shards=6", "travelling") as opened:
        queue: Any = opened
        queue.offer_batch([Message(f"{number:03}", number) for number in range(MANY)])
        first, *_ = shards_of("travelling|json", 6)
        redis_cluster.move_slot(first.named("waiting").decode())
        found = queue.try_poll_many(MANY)
        assert sorted(delivery.payload for delivery in found) == list(range(MANY))
        redis_cluster.move_slot(first.named("waiting").decode())
        assert queue.ack_many(found) == MANY
        assert queue.stats().total == 0


def test_no_shard_is_asked_for_a_history(store_url: str) -> None:
    with opened_store(store_url) as (store, _), pytest.raises(StopIteration) as done:
        next(store.settled(10))
    assert done.value.value == []


def test_a_queue_that_could_not_be_opened_is_not_divided(
    face: Face, redis_cluster: RedisCluster
) -> None:
    redis_cluster.flush()
    own = redis_cluster.node_of("dq:{orders|json}:shards")
    other = next(node for node in redis_cluster.primaries if node is not own)
    settings = {"maxmemory": ("1gb", "0"), "maxmemory-policy": ("allkeys-lru", "noeviction")}
    for name, (refused, _) in settings.items():
        other.ask("CONFIG", "SET", name, refused)
    try:
        with pytest.raises(StoreError, match="maxmemory-policy is allkeys-lru"):
            face.open(f"{redis_cluster.url()}?shards=6", "orders")
    finally:
        for name, (_, usual) in settings.items():
            other.ask("CONFIG", "SET", name, usual)
    face.open(redis_cluster.url(), "orders").close()


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

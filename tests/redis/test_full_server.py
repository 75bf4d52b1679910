"""A server without memory refuses new messages, and those that it has can still be consumed."""

from collections.abc import Iterator
from functools import partial

import pytest

from duequeue import Message, OfferOutcome, RetryPolicy, StoreUnavailable
from duequeue.contract.faces import Face, QueueFace
from duequeue.contract.phrases import DAY, SECOND
from duequeue.port.store import Record, Steps, StoredMessage
from duequeue.stores.redis.commands import MOST_BYTES
from tests.fixtures.redis_server import RedisServer
from tests.redis.structure import check_structure
from tests.redis.waiting import opened_store

KIND = "orders|json"
LEASE = SECOND
SIZE = 1024 * 1024


@pytest.fixture(params=["redis_server", "old_redis", "debian_redis"])
def server(request: pytest.FixtureRequest) -> RedisServer:
    """Valkey 9, Redis 6.2 and Redis 7.0."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, RedisServer)
    return found


@pytest.fixture
def url(server: RedisServer) -> Iterator[str]:
    url = server.fresh_url()
    yield url
    server.ask("CONFIG", "SET", "maxmemory", "0")
    server.ask("FLUSHALL")


def fill(server: RedisServer) -> None:
    """Leave no memory for anything."""
    used = dict(
        line.split(":", 1)
        for line in server.ask("INFO", "memory").decode().splitlines()[1:]
        if line
    )["used_memory"]
    server.ask("CONFIG", "SET", "maxmemory", str(int(used) // 2))


def refused() -> "pytest.RaisesExc[StoreUnavailable]":
    return pytest.raises(StoreUnavailable, match="it is full")


@pytest.mark.parametrize("history", [False, True])
def test_a_full_server_takes_no_messages_and_gives_those_that_it_has(
    server: RedisServer, url: str, face: Face, history: bool
) -> None:
    with face.open(url, "orders", history=history, lease=DAY, retry=RetryPolicy.never()) as queue:
        queue.offer_batch([Message(f"key-{number}", "x" * 500) for number in range(300)])
        queue.offer("later", 1, DAY)
        in_hand = queue.try_poll_many(20)
        assert in_hand[0].bury("before")
        fill(server)
        with refused():
            queue.offer("new", 1)
        with refused():
            queue.offer_batch([Message("key-100", "other"), Message("new", 1)])
        with refused():
            queue.offer("key-5", "another payload for a message that is leased")
        settle_all(queue, in_hand[1:])
        with face.open(url, "orders", history=history, retry=RetryPolicy.never()) as reader:
            assert reader.read("later") is not None
            assert reader.stats().total > 0
            assert len(reader.list().messages) > 0
        while found := queue.try_poll_many(50):
            assert queue.ack_many(found) == len(found)
        assert queue.drop("later")
        assert queue.stats().total == 2  # those that were released
        assert queue.drop_all("orders") == 2
    with server.client(int(url.rpartition("/")[2])) as client:
        assert check_structure(client, KIND) == 0


@pytest.mark.parametrize("options", ["durable=fsync", "durable=fsync&shards=4"])
def test_a_full_server_confirms_what_is_settled_and_dropped(
    face: Face, frail_redis: RedisServer, options: str
) -> None:
    url = f"{frail_redis.fresh_url()}?{options}"
    frail_redis.ask("CONFIG", "SET", "appendfsync", "always")
    try:
        with face.open(url, "orders", retry=RetryPolicy.never()) as queue:
            queue.offer_batch([Message(f"key-{number}", "x" * 500) for number in range(100)])
            in_hand = queue.try_poll_many(20)
            fill(frail_redis)
            with refused():
                queue.offer("new", 1)
            settle_all(queue, in_hand)
            assert queue.drop("key-99")
            while found := queue.try_poll_many(50):
                assert queue.ack_many(found) == len(found)
            assert queue.stats().total == 2  # those that were released
    finally:
        frail_redis.ask("CONFIG", "SET", "maxmemory", "0")
        frail_redis.ask("CONFIG", "SET", "appendfsync", "everysec")


def test_a_server_that_becomes_full_leaves_the_first_of_large_updates(
    server: RedisServer, url: str
) -> None:
    records = [Record(str(number), b"x" * SIZE, 0) for number in range(MOST_BYTES // SIZE + 2)]
    updates = [each._replace(payload=b"1") for each in records]
    with opened_store(url) as (store, session):
        offer = partial(store.offer, updates, 1)

        def offer_and_fill() -> Steps[object]:
            scripts = offer()
            stored = yield next(scripts)
            fill(server)
            return (yield scripts.send(stored))

        session.run(partial(store.offer, records, 1))
        with refused():
            session.run(offer_and_fill)
        found = [session.run(partial(store.read, each.key)) for each in records]
        updated = [isinstance(each, StoredMessage) and each.payload == b"1" for each in found]
        count = updated.count(True)
        assert 0 < count < len(records)
        assert all(updated[:count])
        server.ask("CONFIG", "SET", "maxmemory", "0")
        outcomes = session.run(offer)
        assert outcomes[:count] == [OfferOutcome.IGNORED] * count
        assert set(outcomes[count:]) == {OfferOutcome.UPDATED}


def settle_all(queue: QueueFace, in_hand: list) -> None:  # type: ignore[type-arg]
    """Settle in every way."""
    assert in_hand[0].ack()
    assert in_hand[1].release(DAY)
    assert in_hand[2].release(DAY)
    assert in_hand[3].bury("when it was full")
    assert in_hand[4].extend(DAY)
    assert in_hand[4].ack()
    assert queue.ack_many(in_hand[5:]) == len(in_hand) - 5

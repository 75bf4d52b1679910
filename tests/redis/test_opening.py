"""Opening: what a queue enters in a database, and what it refuses to open."""

import pytest

import duequeue
from duequeue import Queue, SchemaError
from duequeue.contract.phrases import HOUR
from duequeue.stores.redis.keys import KINDS
from tests.fixtures.redis_server import RedisServer

# Braces would end the hash tag that keeps the keys of a queue together.
NAMES = ["{orders}", "}", "{}{", "a%7Bb", "%", "ä ö: ü", "{user}.{id}"]


def database_of(url: str) -> int:
    return int(url.rpartition("/")[2])


@pytest.mark.parametrize("name", NAMES)
def test_all_keys_of_a_queue_are_in_one_slot(
    redis_server: RedisServer, redis_url: str, name: str
) -> None:
    with Queue.open(redis_url, name, history=True) as queue:
        queue.offer("a", 1)
        queue.offer("b", 1)
        queue.try_poll_many(1)[0].bury("why")
        queue.try_poll_many(1)
        queue.cron.install_periodic_tick("tick", HOUR, 1).close()
    keys = redis_server.ask("KEYS", "dq:*", database=database_of(redis_url))
    own = [key for key in keys if not key.startswith((KINDS, b"dq:last_row"))]
    assert len({tag_of(key) for key in own}) == 1
    assert len(own) >= 8


def tag_of(key: bytes) -> bytes:
    """Return what a cluster takes for the slot of a key."""
    begin = key.index(b"{")
    end = key.index(b"}", begin)
    assert end > begin + 1, "an empty tag is none"
    return key[begin + 1 : end]


def test_names_that_look_alike_once_escaped_are_different_queues(redis_url: str) -> None:
    with Queue.open(redis_url, "{") as one, Queue.open(redis_url, "%7B") as other:
        one.offer("a", 1)
        assert not other.contains("a")
        assert {each.name for each in duequeue.queues(redis_url)} == {"{", "%7B"}


def test_a_layout_that_is_not_known_is_refused(redis_server: RedisServer, redis_url: str) -> None:
    Queue.open(redis_url, "orders").close()
    redis_server.ask("HSET", KINDS, "", 2, database=database_of(redis_url))
    with pytest.raises(SchemaError, match="layout 2"):
        Queue.open(redis_url, "orders")


def test_a_transaction_of_the_caller_is_refused_with_advice(redis_url: str) -> None:
    with (
        Queue.open(redis_url, "orders") as queue,
        pytest.raises(TypeError, match="offer after your own commit"),
    ):
        queue.within(object())

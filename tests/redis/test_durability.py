"""What a crash or a failover loses under each setting, and which servers are refused."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from duequeue import AsyncQueue, Message, OfferOutcome, RetryPolicy, StoreError, StoreUnavailable
from duequeue.contract.faces import Face, QueueFace
from duequeue.contract.logs import messages_of
from duequeue.stores.redis.connections import durability
from duequeue.stores.redis.connections.examining import confirms_too_early
from tests.fixtures.redis_cluster import RedisCluster
from tests.fixtures.redis_sentinel import replicated
from tests.fixtures.redis_server import (
    NOT_PERSISTENT,
    PERSISTENT,
    RedisServer,
    calls_of,
    redis_6,
    running,
    valkey_9,
)

MANY = 300
ONCE = RetryPolicy.never()
CREATED = OfferOutcome.CREATED


def opened(face: Face, url: str, **options: Any) -> QueueFace:
    return face.open(url, "orders", retry=ONCE, **options)


def offer_many(queue: QueueFace) -> int:
    """Offer one by one, and return how many were acknowledged."""
    outcomes = [queue.offer(f"order {number}", number) for number in range(MANY)]
    return outcomes.count(CREATED)


def total(face: Face, url: str) -> int:
    with opened(face, url) as queue:
        return queue.stats().total


@pytest.fixture(scope="module")
def short_of_memory() -> Iterator[RedisServer]:
    with running(valkey_9(), *PERSISTENT, "--maxmemory", "100mb") as server:
        yield server


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_a_server_that_deletes_queues_is_refused(
    face: Face, short_of_memory: RedisServer, policy: str
) -> None:
    short_of_memory.ask("CONFIG", "SET", "maxmemory-policy", policy)
    with pytest.raises(StoreError, match=rf"maxmemory-policy is {policy}.*noeviction.*eviction="):
        opened(face, short_of_memory.url())
    opened(face, f"{short_of_memory.url()}?eviction=allow").close()


@pytest.mark.parametrize("policy", ["noeviction", "volatile-lru", "volatile-ttl"])
def test_a_server_that_only_deletes_what_expires_is_fine(
    face: Face, short_of_memory: RedisServer, policy: str
) -> None:
    short_of_memory.ask("CONFIG", "SET", "maxmemory-policy", policy)
    opened(face, short_of_memory.url()).close()


def test_a_policy_without_a_limit_deletes_nothing(face: Face, redis_url: str) -> None:
    opened(face, redis_url).close()


def test_a_server_without_a_file_gets_one_warning(
    face: Face, caplog: pytest.LogCaptureFixture
) -> None:
    with running(valkey_9(), *NOT_PERSISTENT) as server, caplog.at_level(logging.WARNING):
        opened(face, f"{server.url()}?persistence=none").close()
        assert messages_of("duequeue.redis", caplog) == []
        opened(face, server.url()).close()
        opened(face, server.url()).close()
        (warning,) = messages_of("duequeue.redis", caplog)
        assert "writes no append-only file" in warning
        assert server.password not in warning


def test_a_server_that_confirms_before_the_disk_has_it_gets_one_warning(
    face: Face, caplog: pytest.LogCaptureFixture
) -> None:
    with running(valkey_9(), *PERSISTENT) as server, caplog.at_level(logging.WARNING):
        opened(face, server.url()).close()
        server.ask("CONFIG", "SET", "appendfsync", "always")
        opened(face, f"{server.url()}?durable=fsync").close()
        assert messages_of("duequeue.redis", caplog) == []
        server.ask("CONFIG", "SET", "appendfsync", "everysec")
        opened(face, f"{server.url()}?durable=fsync").close()
        opened(face, f"{server.url()}?durable=fsync").close()
        (warning,) = messages_of("duequeue.redis", caplog)
        assert "WAITAOF of this version waits for the disk only if appendfsync is al" in warning
        assert server.password not in warning


@pytest.mark.parametrize(
    ("about", "is_early"),
    [
        ({"redis_version": "7.2.11"}, False),
        ({"redis_version": "7.4.2"}, True),
        ({"redis_version": "8.0.0"}, False),
        ({"redis_version": "7.2.4", "valkey_version": "9.1.2"}, True),
        ({}, False),
    ],
)
def test_these_versions_confirm_before_the_disk_has_it(
    about: dict[str, str], is_early: bool
) -> None:
    assert confirms_too_early(about) is is_early


def test_a_replica_is_refused(face: Face) -> None:
    with (
        replicated() as (_, replica),
        pytest.raises(StoreUnavailable, match="is a replica, which takes no messages"),
    ):
        opened(face, replica.url())


def test_what_a_user_may_not_ask_is_not_checked(face: Face, redis_server: RedisServer) -> None:
    redis_server.ask("ACL", "SETUSER", "quiet", "on", ">pw", "~*", "&*", "+@all", "-info")
    url = f"redis://quiet:pw@127.0.0.1:{redis_server.port}/9998"
    with opened(face, url) as queue:
        assert queue.offer("a", 1) is CREATED
        queue.drop("a")


def test_a_killed_server_loses_nothing_that_it_acknowledged(
    face: Face, frail_redis: RedisServer
) -> None:
    url = frail_redis.fresh_url()
    with opened(face, url) as queue:
        assert offer_many(queue) == MANY
        acked = [delivery for delivery in queue.try_poll_many(100) if delivery.ack()]
        frail_redis.kill()
    frail_redis.start()
    assert total(face, url) == MANY - len(acked) == MANY - 100


def test_a_killed_server_without_a_file_loses_everything(face: Face) -> None:
    with running(valkey_9(), *NOT_PERSISTENT) as server:
        url = f"{server.url()}?persistence=none"
        with opened(face, url) as queue:
            assert offer_many(queue) == MANY
        server.kill()
        server.start()
        assert total(face, url) == 0


def cut_off(replica: RedisServer) -> None:
    """Let a replica receive nothing more: it follows a server that does not exist."""
    replica.ask("REPLICAOF", "127.0.0.1", 1)


def test_durable_fsync_waits_for_the_disk_but_not_with_leases(
    face: Face, frail_redis: RedisServer
) -> None:
    frail_redis.ask("CONFIG", "SET", "appendfsync", "always")
    frail_redis.ask("CONFIG", "RESETSTAT")
    url = f"{frail_redis.fresh_url()}?durable=fsync"
    with opened(face, url) as queue:
        for key in "abcd":
            queue.offer(key, 1)
        assert calls_of(frail_redis, "waitaof") == 4
        first, second, third, fourth = queue.try_poll_many(4)
        first.extend()
        assert calls_of(frail_redis, "waitaof") == 4
        first.ack()
        second.release()
        third.ack(response=1)
        fourth.bury("why")
        queue.drop("b")
        queue.revive("d")
        assert calls_of(frail_redis, "waitaof") == 10
    frail_redis.ask("CONFIG", "SET", "appendfsync", "everysec")


def test_a_batch_in_several_shards_waits_once(face: Face, frail_redis: RedisServer) -> None:
    frail_redis.ask("CONFIG", "SET", "appendfsync", "always")
    try:
        with opened(face, f"{frail_redis.fresh_url()}?durable=fsync&shards=8") as queue:
            frail_redis.ask("CONFIG", "RESETSTAT")
            queue.offer_batch([Message(str(number), 1) for number in range(100)])
            assert calls_of(frail_redis, "waitaof") == 1
    finally:
        frail_redis.ask("CONFIG", "SET", "appendfsync", "everysec")


def test_each_node_of_a_cluster_confirms_its_own_part(
    face: Face, redis_cluster: RedisCluster
) -> None:
    redis_cluster.flush()
    with opened(face, f"{redis_cluster.url()}?durable=fsync&shards=6") as queue:
        for node in redis_cluster.primaries:
            node.ask("CONFIG", "RESETSTAT")
        queue.offer_batch([Message(str(number), 1) for number in range(100)])
        assert [calls_of(node, "waitaof") for node in redis_cluster.primaries] == [2, 2, 2]


def test_many_tasks_wait_for_the_disk_on_few_connections(frail_redis: RedisServer) -> None:
    async def scenario() -> int:
        url = f"{frail_redis.fresh_url()}?durable=fsync&pool_size=2"
        async with AsyncQueue.open(url, "orders", retry=ONCE) as queue:
            await queue.offer_batch([Message(str(each), 1) for each in range(20)])
            await queue.stats()
            before = connections_of(frail_redis)
            assert all(await asyncio.gather(*(queue.drop(str(each)) for each in range(20))))
            return connections_of(frail_redis) - before

    frail_redis.ask("CONFIG", "SET", "appendfsync", "always")
    try:
        assert asyncio.run(scenario()) <= 2
    finally:
        frail_redis.ask("CONFIG", "SET", "appendfsync", "everysec")


def test_the_idle_connections_of_a_lost_server_are_lost_once(frail_redis: RedisServer) -> None:
    async def scenario() -> None:
        url = f"{frail_redis.fresh_url()}?durable=fsync&pool_size=4"
        async with AsyncQueue.open(url, "orders", retry=ONCE) as queue:
            await queue.offer_batch([Message(str(each), 1) for each in range(6)])
            before = connections_of(frail_redis)
            await asyncio.gather(*(queue.drop(str(each)) for each in range(4)))
            assert connections_of(frail_redis) == before + 3
            frail_redis.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            with pytest.raises(StoreUnavailable):
                await queue.drop("4")
            assert await queue.drop("5")

    frail_redis.ask("CONFIG", "SET", "appendfsync", "always")
    try:
        asyncio.run(scenario())
    finally:
        frail_redis.ask("CONFIG", "SET", "appendfsync", "everysec")


def connections_of(server: RedisServer) -> int:
    """Count the connections, those that are idle too."""
    return len(server.ask("CLIENT", "LIST").splitlines())


def test_durable_fsync_fails_if_the_disk_is_not_written(
    face: Face, frail_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durability, "CONFIRM_WITHIN", 0.05)
    frail_redis.ask("CONFIG", "SET", "appendfsync", "no")
    url = frail_redis.fresh_url()
    try:
        with (
            opened(face, f"{url}?durable=fsync") as queue,
            pytest.raises(StoreUnavailable, match="not written to the disk"),
        ):
            queue.offer("a", 1)
    finally:
        frail_redis.ask("CONFIG", "SET", "appendfsync", "everysec")
    assert total(face, url) == 1  # it was made, and nobody was promised that it stays


@pytest.mark.parametrize(
    ("program", "options", "reason"),
    [
        (redis_6, PERSISTENT, "needs Redis 7.2, but this is 6.2"),
        (valkey_9, NOT_PERSISTENT, "needs an append-only file"),
    ],
)
def test_durable_fsync_is_refused_where_it_cannot_be(
    face: Face, program: Any, options: tuple[str, ...], reason: str
) -> None:
    with running(program(), *options) as server, pytest.raises(StoreError, match=reason):
        opened(face, f"{server.url()}?durable=fsync")


def test_durable_replica_is_refused_without_a_replica(face: Face, redis_url: str) -> None:
    with pytest.raises(StoreUnavailable, match="has no replica at the moment"):
        opened(face, f"{redis_url}?durable=replica")


def test_a_failover_loses_what_the_replica_had_not_got(face: Face) -> None:
    with replicated() as (primary, replica):
        with opened(face, primary.url()) as queue:
            queue.offer("replicated", 1)
            primary.ask("WAIT", 1, 5_000)
            cut_off(replica)
            assert queue.offer("only on the primary", 1) is CREATED
            primary.kill()
        replica.ask("REPLICAOF", "NO", "ONE")
        with opened(face, replica.url()) as queue:
            assert queue.contains("replicated")
            assert not queue.contains("only on the primary")


def test_durable_replica_acknowledges_only_what_a_replica_has(
    face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    with replicated() as (primary, replica):
        with opened(face, f"{primary.url()}?durable=replica") as queue:
            assert offer_many(queue) == MANY
            monkeypatch.setattr(durability, "CONFIRM_WITHIN", 0.05)
            cut_off(replica)
            for _ in range(2):  # the second time it changes nothing, which is no confirmation
                with pytest.raises(StoreUnavailable, match="no replica had it"):
                    queue.offer("only on the primary", 1)
            primary.kill()
        replica.ask("REPLICAOF", "NO", "ONE")
        assert total(face, replica.url()) == MANY

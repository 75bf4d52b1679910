"""The servers that the tests start do what the tests rely on."""

import pytest

from tests.fixtures.redis_cluster import RedisCluster
from tests.fixtures.redis_sentinel import Watched
from tests.fixtures.redis_server import RedisServer
from tests.fixtures.redis_tls import TlsServer


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("redis_server", b"valkey_version:9."),
        ("old_redis", b"redis_version:6.2."),
        ("debian_redis", b"redis_version:7.0."),
    ],
)
def test_each_server_has_the_version_that_its_name_promises(
    name: str, version: bytes, request: pytest.FixtureRequest
) -> None:
    server: RedisServer = request.getfixturevalue(name)
    assert version in server.ask("INFO", "server")


def test_a_server_that_was_killed_has_its_data_after_a_restart(frail_redis: RedisServer) -> None:
    frail_redis.ask("SET", "here", "still")
    frail_redis.kill()
    frail_redis.start()
    assert frail_redis.ask("GET", "here") == b"still"


def test_tls_is_the_only_way_in(tls_redis: TlsServer) -> None:
    assert tls_redis.server.ask("PING")


def test_sentinel_promotes_the_replica(watched_redis: Watched) -> None:
    watched_redis.primary.ask("SET", "here", "still")
    watched_redis.primary.ask("WAIT", 1, 5_000)
    watched_redis.fail_over()
    assert watched_redis.replica.ask("GET", "here") == b"still"


def test_a_slot_of_the_cluster_moves(redis_cluster: RedisCluster) -> None:
    source = redis_cluster.node_of("here")
    source.ask("SET", "here", "still")
    target = redis_cluster.move_slot("here")
    assert target.ask("GET", "here") == b"still"
    assert redis_cluster.node_of("here") is target


def test_the_replica_of_a_cluster_takes_over(frail_cluster: RedisCluster) -> None:
    frail_cluster.fail_over()
    assert frail_cluster.replicas[0].ask("ROLE")[0] == b"master"

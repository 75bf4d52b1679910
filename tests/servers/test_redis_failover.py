"""Redis dies under load, and comes back or is replaced; clients go on by themselves."""

from pathlib import Path

import pytest

from tests.fixtures.redis_cluster import RedisCluster
from tests.fixtures.redis_sentinel import Watched
from tests.fixtures.redis_server import PERSISTENT, running, valkey_9
from tests.servers.load import Damage, doomed_load, under_load

UNHARMED = Damage(set(), set())


@pytest.mark.parametrize("option", ["", "?durable=fsync"])
def test_a_killed_server_loses_nothing(tmp_path: Path, option: str) -> None:
    with running(valkey_9(), *PERSISTENT, "--appendfsync", "always") as server:
        url = f"{server.url()}{option}"
        with under_load(url, tmp_path) as load:
            for _ in range(2):
                load.go_on()
                server.kill()
                server.start()
            load.go_on()
        assert load.damage(url) == UNHARMED


def test_sentinel_promotes_a_replica_and_clients_go_on_there(
    tmp_path: Path, watched_redis: Watched
) -> None:
    with under_load(watched_redis.url(), tmp_path) as load:
        watched_redis.fail_over()
        load.go_on()


def test_a_failover_loses_nothing_that_has_waited_for_the_replica(
    tmp_path: Path, watched_redis: Watched
) -> None:
    # After the failover there is no replica, so nothing more is acknowledged.
    with doomed_load(f"{watched_redis.url()}&durable=replica", tmp_path) as load:
        watched_redis.fail_over()
        load.kill()
        assert load.damage(watched_redis.url()) == UNHARMED


def test_a_replica_of_a_cluster_takes_over_and_clients_go_on_there(
    tmp_path: Path, frail_cluster: RedisCluster
) -> None:
    with under_load(frail_cluster.url(), tmp_path) as load:
        frail_cluster.fail_over()
        load.go_on()

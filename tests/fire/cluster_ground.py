"""Rounds on a cluster of Valkey, in which each primary has a replica."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from tests.fire.ground import Ground
from tests.fixtures.redis_cluster import (
    NODE_TIMEOUT,
    PRIMARIES,
    SHORT_TIMEOUT,
    RedisCluster,
    is_in_sync,
    is_ok,
    running_cluster,
)
from tests.fixtures.redis_server import RedisServer, wait_until


class ClusterGround(Ground):
    """A cluster of our own, whose clients find the nodes by themselves."""

    has_network = True
    keeps_history = False

    def __init__(self, cluster: RedisCluster) -> None:
        self._cluster = cluster
        self._pairs = list(zip(cluster.led, cluster.replicas, strict=True))
        self._turns = cycle(self._pairs)

    def fresh_url(self) -> str:
        for pair in self._pairs:
            _primary_of(pair).ask("FLUSHALL")
        return f"{self._cluster.url()}?durable=replica"

    def crash(self) -> None:
        """Kill the primaries in turn; return when the old one follows the new one."""
        pair = next(self._turns)
        old = _primary_of(pair)
        (new,) = (node for node in pair if node is not old)
        old.kill()
        self._cluster.set_timeout(SHORT_TIMEOUT)
        wait_until(lambda: _leads(new), "the replica was promoted")
        old.start()
        wait_until(self._is_calm, "every primary has a replica again")
        self._cluster.set_timeout(NODE_TIMEOUT)

    def _is_calm(self) -> bool:
        """Return whether the cluster is whole; others may have failed over on a busy machine."""
        leads = [sorted(map(_leads, pair)) for pair in self._pairs]
        followers = [node for pair in self._pairs for node in pair if not _leads(node)]
        return (
            leads == [[False, True]] * PRIMARIES
            and all(map(is_in_sync, followers))
            and all(map(is_ok, self._cluster.nodes))
        )


def _primary_of(pair: tuple[RedisServer, RedisServer]) -> RedisServer:
    return next(node for node in pair if _leads(node))


def _leads(node: RedisServer) -> bool:
    return bool(node.ask("ROLE")[0] == b"master")


@contextmanager
def cluster_ground(folder: Path) -> Iterator[Ground]:
    with running_cluster(PRIMARIES) as cluster:
        yield ClusterGround(cluster)

"""A node of a cluster is lost or silent: only the calls that it had to answer fail."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from duequeue import StoreUnavailable
from duequeue.contract.phrases import PATIENCE
from duequeue.port.store import Steps
from duequeue.stores.redis.commands import Question
from duequeue.stores.redis.connections.session_async import AsyncRedisSession
from duequeue.stores.redis_client.settings import RedisSettings
from tests.fixtures.redis_cluster import RedisCluster
from tests.fixtures.redis_server import RedisServer, wait_until

BRIEFLY = 0.2  # seconds that a call has whose command is never answered


def asked(*words: str) -> Steps[Any]:
    return (yield Question(words))


def waits_there(node: RedisServer) -> bool:
    return b"blocked_clients:1\r\n" in node.ask("INFO", "clients")


class Stage:
    """A session, and a list on each of two nodes, for whose first item a call can wait."""

    def __init__(self, cluster: RedisCluster) -> None:
        cluster.flush()
        self.session = AsyncRedisSession(RedisSettings.from_url(cluster.url()))
        self.lost, *others = (f"list {number}" for number in range(100))
        self.lost_node = cluster.node_of(self.lost)
        self.kept = next(key for key in others if cluster.node_of(key) is not self.lost_node)
        self.kept_node = cluster.node_of(self.kept)

    async def ask(self, *words: str, seconds: float = PATIENCE) -> Any:
        return await self.session.run(partial(asked, *words), seconds)

    async def lose(self) -> None:
        """Cut the connection to a node while a call waits for it."""
        waiting = asyncio.create_task(self.ask("BLPOP", self.lost, "0"))
        await asyncio.to_thread(wait_until, partial(waits_there, self.lost_node), "a call waits")
        await asyncio.to_thread(
            self.lost_node.ask, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"
        )
        await waiting

    async def silence(self) -> None:
        """Let a node owe the answer to a call whose time is over."""
        await self.ask("BLPOP", self.lost, "0", seconds=BRIEFLY)


async def scenario(
    cluster: RedisCluster, lose: Callable[[Stage], Coroutine[Any, Any, None]]
) -> None:
    stage = Stage(cluster)
    assert await stage.ask("LLEN", stage.lost) == 0
    kept = asyncio.create_task(stage.ask("BLPOP", stage.kept, "0"))
    await asyncio.to_thread(wait_until, partial(waits_there, stage.kept_node), "a call waits")
    with pytest.raises(StoreUnavailable):
        await lose(stage)
    stage.kept_node.ask("RPUSH", stage.kept, "reply")
    assert await kept == [stage.kept.encode(), b"reply"]
    assert await stage.ask("LLEN", stage.lost) == 0  # on a new connection
    await stage.session.close()


@pytest.mark.parametrize("lose", [Stage.lose, Stage.silence])
def test_calls_to_the_other_nodes_go_on(
    redis_cluster: RedisCluster, lose: Callable[[Stage], Coroutine[Any, Any, None]]
) -> None:
    asyncio.run(scenario(redis_cluster, lose))

"""The connections of an event loop to the nodes of a cluster, which all its tasks share."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from redis.exceptions import AskError
from redis.exceptions import ConnectionError as LostConnection

from duequeue.stores.redis.multiplexer import Multiplexer
from duequeue.stores.redis_client.cluster import LOSSES
from duequeue.stores.redis_client.cluster_map import MOST_REDIRECTIONS, key_of, shared_map
from duequeue.stores.redis_client.connecting import connect_to_async
from duequeue.stores.redis_client.servers import Server
from duequeue.stores.redis_client.settings import RedisSettings


class ClusterMultiplexer:
    """Passes each command to the node that has its key."""

    def __init__(self, settings: RedisSettings) -> None:
        self._settings = settings
        self._map = shared_map(settings)
        self._nodes: dict[Server, Multiplexer] = {}
        self._opening: defaultdict[Server, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._last: Server | None = None
        self.is_broken = False

    async def call(self, words: Sequence[Any]) -> Any:
        """Send a command to its node, and follow a slot to where it has moved.

        A script is loaded on every node that is known. What waits for an earlier command goes to
        its node, so a connection on which somebody waits must not be shared.
        """
        command = tuple(words)
        key = key_of(command)
        if key is None and command[0] == "SCRIPT":
            return [await self._call(server, command) for server in tuple(self._nodes)]
        server = self._map.node_for(key) if key is not None else self._last or self._map.any_node
        asks = False
        for _ in range(MOST_REDIRECTIONS):
            self._last = server
            try:
                return await self._call(server, command, asks=asks)
            except AskError as error:
                server, asks = self._map.redirected(server, error)
        raise LostConnection("the nodes of the cluster sent a command around in a circle")

    async def close(self, error: BaseException | None = None) -> None:
        """Close the connections to all nodes, and fail those who wait."""
        self.is_broken = True
        nodes, self._nodes = self._nodes, {}
        for node in nodes.values():
            await node.close(error)

    async def give_up(self, error: BaseException) -> None:
        """Close the connections to the nodes that owe an answer to a call that has ended."""
        for server, node in tuple(self._nodes.items()):
            if node.owes_an_answer:
                await self._lose(server, node, error)

    async def _call(self, server: Server, command: Sequence[Any], *, asks: bool = False) -> Any:
        node: Multiplexer | None = None
        try:
            node = await self._node(server)
            asked = [node.call(("ASKING",))] if asks else []
            *_, answer = await asyncio.gather(*asked, node.call(command))
        except LOSSES as error:
            await self._lose(server, node if node and node.is_broken else None, error)
            raise
        return answer

    async def _lose(self, server: Server, node: Multiplexer | None, error: BaseException) -> None:
        """Forget what a node had, and close the connection to it, if there is one."""
        self._map.lost(server)
        if node is not None:
            if self._nodes.get(server) is node:
                del self._nodes[server]
            await node.close(error)

    async def _node(self, server: Server) -> Multiplexer:
        found = self._nodes.get(server)
        if found is not None and not found.is_broken:
            return found
        async with self._opening[server]:
            found = self._nodes.get(server)
            if found is None or found.is_broken:
                if found is not None:
                    del self._nodes[server]  # if it cannot be reached, nobody loads scripts there
                    await found.close()
                connection = await connect_to_async(self._settings, server)
                found = self._nodes[server] = Multiplexer(connection)
            return found

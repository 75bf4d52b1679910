"""The connection of an event loop to each server, which all its tasks share.

Commands are sent in the order of the calls and answered in the same order. If a caller
is cancelled, its place in that order remains, and its answer is dropped when it comes.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any

from hiredis import pack_command
from redis.exceptions import AskError, RedisError, ResponseError
from redis.exceptions import ConnectionError as LostConnection

from duequeue.stores.redis_client.cluster import LOSSES, MOST_REDIRECTIONS, key_of, shared_map
from duequeue.stores.redis_client.connecting import AsyncConnection, connect_to_async
from duequeue.stores.redis_client.settings import RedisSettings, Server


class Multiplexer:
    """Passes the commands of many tasks through one connection."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._unsent: list[bytes] = []
        self._sending: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self.is_broken = False

    def call(self, words: Sequence[Any]) -> "asyncio.Future[Any]":
        """Send a command with the others of this turn of the event loop."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self.is_broken:  # a late reply to an earlier command would be taken for the answer
            answer.set_exception(LostConnection("the connection was lost before this command"))
            return answer
        self._unsent.append(pack_command(tuple(words)))
        self._waiting.append(answer)
        if self._sending is None:
            self._sending = self._loop.create_task(self._send())
        if self._reading is None:
            self._reading = self._loop.create_task(self._read())
        return answer

    async def close(self, error: BaseException | None = None) -> None:
        """Close the connection, and fail those who wait."""
        self._fail(error or LostConnection("the connection was closed"))
        for task in (self._sending, self._reading):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
                await asyncio.wait([task])
        await self._connection.disconnect(nowait=True)

    async def give_up(self, error: BaseException) -> None:
        """Close the connection after a call got no answer, because nobody else gets one either."""
        await self.close(error)

    @property
    def owes_an_answer(self) -> bool:
        """Whether the server has not answered a call that was given up or cancelled."""
        return any(waiter.cancelled() for waiter in self._waiting)

    async def _send(self) -> None:
        try:
            while self._unsent:
                unsent, self._unsent = self._unsent, []
                await self._connection.send_packed_command(unsent, check_health=False)
        except (RedisError, OSError) as error:
            self._fail(error)
        finally:
            self._sending = None

    async def _read(self) -> None:
        try:
            while self._waiting:
                try:
                    reply = await self._connection.read_response(disconnect_on_error=False)
                except ResponseError as error:
                    reply = error
                if self.is_broken:  # sending has failed meanwhile, and nobody waits any more
                    return
                self._answer(self._waiting.popleft(), reply)
        except (RedisError, OSError) as error:
            self._fail(error)
        finally:
            self._reading = None

    def _answer(self, waiter: "asyncio.Future[Any]", reply: object) -> None:
        if waiter.done():
            return
        if isinstance(reply, BaseException):
            waiter.set_exception(reply)
        else:
            waiter.set_result(reply)

    def _fail(self, error: BaseException) -> None:
        self.is_broken = True
        while self._waiting:
            self._answer(self._waiting.popleft(), error)


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

"""The same sessions, awaiting."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from math import inf
from time import monotonic
from typing import TypeVar

from redis.exceptions import NoScriptError, RedisError

from duequeue.drive.steps import drive_async
from duequeue.errors import QueueClosed
from duequeue.port.store import Operation
from duequeue.process.shared import Shared
from duequeue.stores.redis.commands import LOAD, Question, Script
from duequeue.stores.redis.connections.durability import (
    barrier,
    looks_before_waits,
    require_confirmed,
    slots_to_confirm,
    wait_words,
)
from duequeue.stores.redis.connections.errors import leaves_it_usable, no_answer, translate
from duequeue.stores.redis.connections.multiplexer import ClusterMultiplexer, Multiplexer
from duequeue.stores.redis_client.connecting import connect_async
from duequeue.stores.redis_client.nodes import ANSWER_WITHIN
from duequeue.stores.redis_client.settings import Durable, RedisSettings, Way
from duequeue.stores.shards import Together, Undo

T = TypeVar("T")

# In seconds: how long a task that was cancelled goes on, to give back what it has claimed.
UNDO_WITHIN = 1.0


class LoopConnection:
    """The connection of one event loop, which closes with the last session.

    A call that waits for a disk or a replica would keep the others waiting too, so it gets its own
    connection for that time. There are at most `pool_size` of these.
    """

    def __init__(self, settings: RedisSettings) -> None:
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._open: Multiplexer | ClusterMultiplexer | None = None
        self._spare: list[Multiplexer | ClusterMultiplexer] = []
        self._opening = asyncio.Lock()
        self._lending = asyncio.Semaphore(settings.pool_size)
        self._users = 0

    def join(self) -> None:
        """Count one more user."""
        self._users += 1

    async def leave(self) -> None:
        """Count one user fewer, and close the connection after the last one."""
        self._users -= 1
        if not self._users:
            multiplexers, self._open, self._spare = [*self._spare, self._open], None, []
            for multiplexer in multiplexers:
                if multiplexer is not None:
                    await multiplexer.close()

    async def get(self) -> Multiplexer | ClusterMultiplexer:
        """Return the connection; open it if there is none that works."""
        found = self._open
        if found is not None and not found.is_broken:
            return found
        async with self._opening:
            if not self._users:
                raise QueueClosed("the queue was closed while this call ran")
            if self._open is None or self._open.is_broken:
                if self._open is not None:
                    await self._open.close()
                self._open = await self._connect()
            return self._open

    @asynccontextmanager
    async def own(self) -> AsyncIterator[Multiplexer | ClusterMultiplexer]:
        """Lend a connection that nobody else uses; it is kept unless something went wrong."""
        async with self._lending:
            multiplexer = self._spare.pop() if self._spare else await self._connect()
            try:
                yield multiplexer
            except BaseException:
                await multiplexer.close()
                raise
            if self._users and not multiplexer.is_broken:
                self._spare.append(multiplexer)
            else:
                await multiplexer.close()

    async def close_spare(self) -> None:
        """Close the connections that nobody uses now, because one was lost."""
        spare, self._spare = self._spare, []
        for multiplexer in spare:
            await multiplexer.close()

    async def _connect(self) -> Multiplexer | ClusterMultiplexer:
        if self._settings.way is Way.CLUSTER:
            return ClusterMultiplexer(self._settings)
        return Multiplexer(await connect_async(self._settings))


_connections: Shared[LoopConnection] = Shared()


def shared_connection(settings: RedisSettings) -> LoopConnection:
    """Return the connection of the running event loop.

    It holds on to its loop, so while it exists, no other loop has that id.
    """
    loop = asyncio.get_running_loop()
    return _connections.get((settings, id(loop)), partial(LoopConnection, settings))


class AsyncRedisSession:
    """Runs each operation on the connection that this event loop shares."""

    def __init__(self, settings: RedisSettings) -> None:
        self._settings = settings
        self._connection = shared_connection(settings)
        self._connection.join()
        self._durable = settings.durable
        self._closed = False

    async def run(
        self,
        operation: Operation[T],
        seconds: float = inf,
        *,
        consumes: bool = False,  # noqa: ARG002 - no script waits for a lock
    ) -> T:
        """Run one operation; each script is a transaction of its own."""
        try:
            return await drive_async(operation(), partial(self._perform, monotonic() + seconds))
        except (RedisError, OSError) as error:
            raise translate(error, self._settings, seconds) from error

    async def close(self) -> None:
        """Leave the connection, which closes with its last user."""
        if not self._closed:
            self._closed = True
            await self._connection.leave()

    async def _perform(
        self, ends_at: float, command: Script | Together | Undo | Question
    ) -> object:
        if isinstance(command, Undo):
            await self._undo(command.commands)
            return None
        slots = slots_to_confirm(command) if self._durable is not Durable.NOTHING else []
        left = min(ends_at - monotonic(), ANSWER_WITHIN)
        multiplexer: Multiplexer | ClusterMultiplexer | None = None
        try:
            async with asyncio.timeout(left):
                if slots:
                    return await self._answer_durably(ends_at, command, slots)
                multiplexer = await self._connection.get()
                return await _answer(multiplexer, command)
        except TimeoutError:
            error: Exception = no_answer(left)
        except (RedisError, OSError) as raised:
            if leaves_it_usable(raised):
                raise
            error = raised
        if multiplexer is not None:
            await multiplexer.give_up(error)
        await self._connection.close_spare()  # they lead to the same lost server
        raise error

    async def _undo(self, scripts: Sequence[Script]) -> None:
        """Run scripts on the connection of those that they undo, and so after them."""
        with suppress(RedisError, OSError):
            async with asyncio.timeout(UNDO_WITHIN):
                await _answer_all(await self._connection.get(), scripts)

    async def _answer_durably(
        self, ends_at: float, command: Script | Together | Question, slots: list[bytes]
    ) -> object:
        """Wait until what was changed is as durable as the URL demands."""
        async with self._connection.own() as multiplexer:
            reply = await _answer(multiplexer, command)
            for slot in slots:
                await _answer(multiplexer, barrier(slot))
            for look in looks_before_waits(self._settings, slots):
                if look is not None:
                    await multiplexer.call(look)
                confirmed = await multiplexer.call(wait_words(self._durable, ends_at - monotonic()))
                require_confirmed(self._durable, confirmed)
        return reply


async def _answer(
    multiplexer: Multiplexer | ClusterMultiplexer, command: Script | Together | Question
) -> object:
    """Send a script and return its reply; load it if the server does not know it."""
    if isinstance(command, Question):
        return await multiplexer.call(command.words)
    if isinstance(command, Together):
        return await _answer_all(multiplexer, command.commands)
    try:
        return await multiplexer.call(command.words)
    except NoScriptError:
        await multiplexer.call((*LOAD, command.code.text))
        return await multiplexer.call(command.words)


async def _answer_all(
    multiplexer: Multiplexer | ClusterMultiplexer, commands: Sequence[Script]
) -> list[object]:
    """Send all scripts at once; the first error is raised after the last answer."""
    answering = [_answer(multiplexer, command) for command in commands]
    replies = await asyncio.gather(*answering, return_exceptions=True)
    for reply in replies:
        if isinstance(reply, BaseException):
            raise reply
    return replies

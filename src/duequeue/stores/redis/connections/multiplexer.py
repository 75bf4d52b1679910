"""One connection of an event loop, which all its tasks share.

Commands are sent in the order of the calls and answered in the same order. If a caller
is cancelled, its place in that order remains, and its answer is dropped when it comes.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

from hiredis import pack_command
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import RedisError, ResponseError

from duequeue.stores.redis_client.connecting import AsyncConnection


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

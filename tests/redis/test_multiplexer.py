"""The connection that all tasks of an event loop share, when it breaks."""

import asyncio
from typing import Any

import pytest
from redis.exceptions import ConnectionError as LostConnection

from duequeue.stores.redis.connections.multiplexer import Multiplexer
from duequeue.stores.redis_client.connecting import connect_async
from duequeue.stores.redis_client.settings import RedisSettings
from tests.fixtures.redis_server import RedisServer


def test_a_reply_that_comes_after_sending_has_failed_is_nobodys(
    redis_server: RedisServer, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise LostConnection("sending failed")

    async def scenario() -> None:
        connection = await connect_async(RedisSettings.from_url(redis_url))
        line = Multiplexer(connection)
        earlier = line.call(("BLPOP", "late", "10"))
        await asyncio.sleep(0)
        (reading,) = (each for each in asyncio.all_tasks() if "_read" in repr(each.get_coro()))
        with monkeypatch.context() as patch:
            patch.setattr(connection, "send_packed_command", fail)
            with pytest.raises(LostConnection, match="sending failed"):
                await line.call(("PING",))
        with pytest.raises(LostConnection, match="sending failed"):
            await earlier
        with pytest.raises(LostConnection, match="before this command"):
            await line.call(("PING",))
        redis_server.ask("RPUSH", "late", "reply", database=int(redis_url.rpartition("/")[2]))
        await asyncio.wait([reading])
        assert reading.exception() is None
        await line.close()

    asyncio.run(scenario())

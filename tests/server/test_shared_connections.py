"""The queues of one process share their connections to a server."""

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack

import pytest

from duequeue import AsyncQueue, Queue
from duequeue.contract.stage import until
from duequeue.server import app_for
from tests.server.served import Served, served

QUEUES = 20


@pytest.fixture
def server() -> Iterator[Served]:
    """A server that only the queues of one test have ever called."""
    with served(app_for(f"memory:{secrets.token_hex(8)}")) as running:
        yield running


def test_queues_that_are_used_in_turn_use_one_connection(server: Served, name: str) -> None:
    with ExitStack() as opened:
        queues = [
            opened.enter_context(Queue.open(server.url, f"{name}-{number}"))
            for number in range(QUEUES)
        ]
        for queue in queues:
            queue.offer("key", 1)
        queues[0].close()  # the others still have the connection
        assert all(queue.try_poll() for queue in queues[1:])
        assert server.connections == 1
    until(lambda: server.connections == 0)


def test_awaiting_queues_use_one_connection_too(server: Served, name: str) -> None:
    async def run() -> None:
        async with AsyncExitStack() as opened:
            queues = [
                await opened.enter_async_context(
                    await AsyncQueue.open(server.url, f"{name}-{number}")
                )
                for number in range(QUEUES)
            ]
            for queue in queues:
                await queue.offer("key", 1)
            await queues[0].close()
            for queue in queues[1:]:
                assert await queue.try_poll()
            assert server.connections == 1

    asyncio.run(run())
    until(lambda: server.connections == 0)


def test_queues_with_other_tokens_do_not_share(server: Served, name: str) -> None:
    with (
        Queue.open(server.url, name, token="one"),
        Queue.open(server.url, name, token="two"),
    ):
        assert server.connections == 2

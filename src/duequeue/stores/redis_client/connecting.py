"""Connections to the server that takes writes, however it is found.

When one is lost it is thrown away, because the next may lead to another server.
"""

import asyncio
from typing import Any, Protocol

import redis.asyncio
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as NoAnswer

from duequeue.stores.redis_client.cluster import ClusterConnection
from duequeue.stores.redis_client.nodes import (
    CONNECT_TIMEOUT,
    Connection,
    arguments,
    connect_to,
    find_primary,
)
from duequeue.stores.redis_client.settings import RedisSettings, Server, Way


class AsyncConnection(Protocol):
    """The methods of an awaiting connection that are used."""

    async def send_command(self, *args: Any) -> None:
        """Send a command."""

    async def send_packed_command(self, command: Any, *, check_health: bool = ...) -> None:
        """Send packed commands, one or several."""

    async def read_response(self, *, disconnect_on_error: bool = ...) -> Any:
        """Read the next answer, or raise it if it is an error."""

    async def disconnect(self, *, nowait: bool = ...) -> None:
        """Close it."""


def connect(settings: RedisSettings, seconds: float = CONNECT_TIMEOUT) -> Connection:
    """Open a blocking connection within some seconds.

    That of a cluster sends each command to the node of its key.
    """
    match settings.way:
        case Way.CLUSTER:
            return ClusterConnection(settings)
        case Way.SENTINEL:
            connection = connect_to(settings, find_primary(settings), seconds)
            try:
                connection.send_command("ROLE")
                refuse_replica(connection.read_response())
            except BaseException:
                connection.disconnect()
                raise
            return connection
        case Way.SERVER | Way.SOCKET:
            only = settings.servers[0] if settings.servers else None
            return connect_to(settings, only, seconds)


async def connect_async(settings: RedisSettings) -> AsyncConnection:
    """Open an awaiting connection to the one server; a cluster has several."""
    match settings.way:
        case Way.CLUSTER:
            raise LookupError("a cluster has several servers")
        case Way.SENTINEL:
            # Few connections are made, so a thread asks Sentinel, as it does for blocking queues.
            primary = await asyncio.to_thread(find_primary, settings)
            connection = await connect_to_async(settings, primary)
            try:
                await connection.send_command("ROLE")
                refuse_replica(await connection.read_response())
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
            return connection
        case Way.SERVER | Way.SOCKET:
            return await connect_to_async(
                settings, settings.servers[0] if settings.servers else None
            )


async def connect_to_async(settings: RedisSettings, server: Server | None) -> AsyncConnection:
    """Open an awaiting connection to one server, or to the socket."""
    given = arguments(settings)
    driver: Any
    if server is None:
        driver = redis.asyncio.UnixDomainSocketConnection(path=settings.path, **given)
    elif settings.tls is None:
        driver = redis.asyncio.Connection(**server._asdict(), **given)
    else:
        tls = dict(settings.tls)
        driver = redis.asyncio.SSLConnection(**server._asdict(), **given, **tls)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            await driver.connect()
    except TimeoutError:
        await driver.disconnect(nowait=True)
        raise NoAnswer("the server did not answer a new connection") from None
    except BaseException:
        await driver.disconnect(nowait=True)
        raise
    connection: AsyncConnection = driver
    return connection


def refuse_replica(role: Any) -> None:
    """Raise if a server that was named as the primary no longer is."""
    if role[0] != b"master":
        raise LostConnection(
            "Sentinel named a server that takes no writes, because a failover is under way"
        )

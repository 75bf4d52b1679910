"""Blocking connections to one server.

They are redis-py's own, used below its clients, which would add pools, retries and hooks.
"""

from importlib.metadata import version
from typing import Any, Protocol

import redis
from hiredis import pack_command
from redis.driver_info import DriverInfo
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import RedisError

from duequeue.stores.redis_client.settings import Credentials, RedisSettings, Server

# In seconds. No command takes long, so a server that does not answer one by then is lost.
CONNECT_TIMEOUT = 5.0
ANSWER_WITHIN = 10.0

_DRIVER = DriverInfo().add_upstream_driver("duequeue", version("duequeue"))

# Of the Sentinels of a URL, the one that answered last. It is asked first, because each connection
# would wait for seconds for one whose machine is down.
_answered_last: dict[tuple[Server, ...], Server] = {}


class Packer:
    """Packs commands; unlike redis-py's own, it does not look for spaces and views in the words."""

    def pack(self, *words: Any) -> list[bytes]:
        """Return a command as it is sent."""
        return [pack_command(words)]


class Connection(Protocol):
    """The methods of a blocking connection that are used."""

    def send_command(self, *args: Any) -> None:
        """Send a command; several may be sent before the first answer is read."""

    def read_response(self, *, timeout: float = ...) -> Any:
        """Read the next answer within some seconds, or raise it if it is an error."""

    def can_read(self, timeout: float) -> bool:
        """Wait up to some seconds for an answer, and return whether one has come."""

    def disconnect(self) -> None:
        """Close it."""


def connect_to(
    settings: RedisSettings, server: Server | None, seconds: float = CONNECT_TIMEOUT
) -> Connection:
    """Open a connection to one server, or to the socket, within some seconds."""
    limit = min(seconds, CONNECT_TIMEOUT)
    limits = {"socket_timeout": limit, "socket_connect_timeout": limit}
    given = {**arguments(settings), **limits, "command_packer": Packer()}
    if server is None:
        # redis-py declares a host for every connection, and defines none for this one.
        driver = redis.UnixDomainSocketConnection(path=settings.path, **given)  # type: ignore[abstract, no-untyped-call]
        return _opened(driver)
    return _opened(_to_server(settings, server, given))


def connect_to_sentinel(settings: RedisSettings, server: Server) -> Connection:
    """Open a connection to one of the Sentinels."""
    given = arguments(settings, settings.sentinel_credentials)
    limited = {**given, "db": 0, "socket_timeout": CONNECT_TIMEOUT}
    return _opened(_to_server(settings, server, limited))


def arguments(settings: RedisSettings, credentials: Credentials | None = None) -> dict[str, Any]:
    """Return the arguments with which every connection of ours is made.

    Answers are those of RESP2, the same on every server. On an awaiting connection
    they have no time limit of their own, because each call has one.
    """
    used = credentials or settings.credentials
    return {
        "db": settings.database,
        "username": used.username,
        "password": used.password,
        "protocol": 2,
        "socket_timeout": None,
        "socket_connect_timeout": CONNECT_TIMEOUT,
        "driver_info": _DRIVER,
    }


def _to_server(settings: RedisSettings, server: Server, given: dict[str, Any]) -> Any:
    if settings.tls is None:
        return redis.Connection(**server._asdict(), **given)  # type: ignore[no-untyped-call]
    return redis.SSLConnection(**server._asdict(), **given, **dict(settings.tls))


def _opened(driver: Any) -> Connection:
    connection: Connection = driver
    driver.connect()
    driver.socket_timeout = ANSWER_WITHIN
    driver.update_current_socket_timeout(ANSWER_WITHIN)
    return connection


def find_primary(settings: RedisSettings) -> Server:
    """Ask one Sentinel after the other for the primary of the service."""
    reasons = []
    last = _answered_last.get(settings.servers)
    for sentinel in sorted(settings.servers, key=lambda each: each != last):
        try:
            found = _ask(settings, sentinel)
        except (RedisError, OSError) as error:
            reasons.append(f"{sentinel}: {error}")
            continue
        if found:
            _answered_last[settings.servers] = sentinel
            return Server(found[0].decode(), int(found[1]))
        reasons.append(f"{sentinel}: it does not know the service {settings.service!r}")
    raise LostConnection(f"no Sentinel names a primary ({'; '.join(reasons)})")


def _ask(settings: RedisSettings, sentinel: Server) -> Any:
    connection = connect_to_sentinel(settings, sentinel)
    try:
        connection.send_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", settings.service)
        return connection.read_response()
    finally:
        connection.disconnect()

"""Which server Sentinel calls the primary."""

from typing import Any

from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import RedisError

from duequeue.stores.redis_client.nodes import connect_to_sentinel
from duequeue.stores.redis_client.servers import Server
from duequeue.stores.redis_client.settings import RedisSettings

# Of the Sentinels of a URL, the one that answered last. It is asked first, because each connection
# would wait for seconds for one whose machine is down.
_answered_last: dict[tuple[Server, ...], Server] = {}


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

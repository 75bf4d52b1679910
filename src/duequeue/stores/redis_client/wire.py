"""A line of wake-ups to Redis, which hears what is published on a channel."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from redis.exceptions import TimeoutError as NoAnswer

from duequeue.process import line as lines
from duequeue.process.line import ANSWER_WITHIN
from duequeue.stores.redis_client.connecting import connect
from duequeue.stores.redis_client.nodes import Connection, connect_to
from duequeue.stores.redis_client.servers import Server
from duequeue.stores.redis_client.settings import RedisSettings

logger = logging.getLogger("duequeue.redis")

# How soon, in seconds, a line notices that it should close, and how often it makes sure that the
# server still answers.
HEAR_FOR = 0.1
PING_EVERY = 20.0


class Line(lines.Line[Connection]):
    """A line to the server that takes writes, or to the given node of a cluster."""

    def __init__(
        self,
        settings: RedisSettings,
        work: Callable[["Line", Connection], None],
        node: Server | None = None,
    ) -> None:
        self.settings = settings
        self.node = node
        super().__init__(settings.place, settings.address, logger, self._open, work)

    def clean(self, text: str) -> str:
        """Remove the password."""
        return self.settings.clean(text)

    def subscribe(self, connection: Connection, channel: str) -> None:
        """Hear a channel from now on."""
        connection.send_command("SUBSCRIBE", channel)
        connection.read_response(timeout=ANSWER_WITHIN)
        self.works()

    def messages(self, connection: Connection) -> Iterator[str]:
        """Return what is published, as it comes, until the line is closed."""
        asked_at = heard_at = monotonic()
        while not self.closed.is_set():
            reply = _heard(connection)
            now = monotonic()
            if reply is not None:
                heard_at = now
                if reply[0] == b"message":
                    yield reply[2].decode()
            elif now > heard_at + PING_EVERY + ANSWER_WITHIN:
                raise NoAnswer("the server no longer answers")
            elif now > max(asked_at, heard_at) + PING_EVERY:
                connection.send_command("PING")
                asked_at = now

    @contextmanager
    def _open(self) -> Iterator[Connection]:
        settings, node = self.settings, self.node
        connection = connect(settings) if node is None else connect_to(settings, node)
        try:
            yield connection
        finally:
            connection.disconnect()


def _heard(connection: Connection) -> list[bytes] | None:
    """Return the next message, if one comes soon."""
    if not connection.can_read(HEAR_FOR):
        return None
    reply: list[bytes] = connection.read_response(timeout=ANSWER_WITHIN)
    return reply

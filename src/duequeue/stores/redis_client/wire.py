"""How notes reach this process through Redis: what is published on a channel.

Another store may send its wake-ups through Redis if its database cannot. Every process that waits
then hears every note on one channel. Databases may share a Redis, because a note about a queue of
the same name in another database only causes a look that finds nothing.
"""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic

from redis.exceptions import TimeoutError as NoAnswer

from duequeue.process.line import ANSWER_WITHIN, Line
from duequeue.stores.mailbox import Mailbox, Note, Notes, Wire
from duequeue.stores.redis_client.cluster import LOSSES, shared_map
from duequeue.stores.redis_client.connecting import connect
from duequeue.stores.redis_client.nodes import Connection, connect_to
from duequeue.stores.redis_client.settings import RedisSettings, Server, Way

# How soon, in seconds, a line notices that it should close, and how often it makes sure that the
# server still answers.
HEAR_FOR = 0.1
PING_EVERY = 20.0


class RedisWire(Wire[Connection]):
    """A wire through the server that takes writes, or through nodes of a cluster."""

    logger = logging.getLogger("duequeue.redis")
    losses = LOSSES

    def __init__(self, settings: RedisSettings, node: Server | None = None) -> None:
        self.settings = settings
        self._node = node
        self.place = settings.place
        self.address = settings.address

    def connect(self) -> AbstractContextManager[Connection]:
        """Open a connection to the node, or to the server that takes writes."""
        return self.connected(self._node)

    @contextmanager
    def connected(self, node: Server | None) -> Iterator[Connection]:
        """Open a connection, and close it at the end of the block."""
        settings = self.settings
        connection = connect(settings) if node is None else connect_to(settings, node)
        try:
            yield connection
        finally:
            connection.disconnect()

    def clean(self, text: str) -> str:
        """Remove the passwords."""
        return self.settings.clean(text)


def subscribe(line: Line[Connection], connection: Connection, channel: str) -> None:
    """Hear a channel from now on."""
    connection.send_command("SUBSCRIBE", channel)
    connection.read_response(timeout=ANSWER_WITHIN)
    line.works()


def messages(line: Line[Connection], connection: Connection) -> Iterator[str]:
    """Return what is published, as it comes, until the line is closed."""
    asked_at = heard_at = monotonic()
    while not line.closed.is_set():
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


def _heard(connection: Connection) -> list[bytes] | None:
    """Return the next message, if one comes soon."""
    if not connection.can_read(HEAR_FOR):
        return None
    reply: list[bytes] = connection.read_response(timeout=ANSWER_WITHIN)
    return reply


class PublishedWire(RedisWire):
    """PUBLISH and SUBSCRIBE; in a cluster on any node, as each passes on to all what it gets."""

    def __init__(self, settings: RedisSettings) -> None:
        super().__init__(settings)
        # All databases of a Redis would share a channel otherwise.
        self._channel = f"dq:alerts:{settings.database}"

    def connect(self) -> AbstractContextManager[Connection]:
        """Open a connection, in a cluster to a node that has not just been lost."""
        return self._to_any_node() if self.settings.way is Way.CLUSTER else super().connect()

    @contextmanager
    def _to_any_node(self) -> Iterator[Connection]:
        known = shared_map(self.settings)
        node = known.any_node
        try:
            with self.connected(node) as connection:
                yield connection
        except LOSSES:
            known.lost(node)  # so that another one is tried
            raise

    def send(self, box: Mailbox[Connection], connection: Connection, notes: Notes) -> None:
        """Publish each note."""
        for text in box.texts(notes):
            connection.send_command("PUBLISH", self._channel, text)
            connection.read_response(timeout=ANSWER_WITHIN)

    def hear(
        self, box: Mailbox[Connection], line: Line[Connection], connection: Connection
    ) -> None:
        """Hear what others publish."""
        subscribe(line, connection, self._channel)
        box.alert_all()
        for text in messages(line, connection):
            box.hear(Note.parse(text))

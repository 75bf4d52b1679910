"""Wake-ups through Redis for another store, whose database cannot send them itself.

Every process that waits hears every note on one channel. Databases may share a Redis, because a
note about a queue of the same name in another database only causes a look that finds nothing.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from duequeue.process.line import ANSWER_WITHIN, Line
from duequeue.stores.mailbox import Mailbox, Notes
from duequeue.stores.redis_client.cluster import LOSSES
from duequeue.stores.redis_client.cluster_map import shared_map
from duequeue.stores.redis_client.nodes import Connection
from duequeue.stores.redis_client.settings import RedisSettings, Way
from duequeue.stores.redis_client.wire import RedisWire, messages, subscribe
from duequeue.stores.wakeup_note import Note


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

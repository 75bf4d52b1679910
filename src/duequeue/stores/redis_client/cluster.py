"""A blocking connection to a whole cluster: each command goes to the node that has its key."""

from collections import deque
from typing import Any

from redis.exceptions import AskError, ClusterDownError, ReadOnlyError
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as NoAnswer

from duequeue.stores.redis_client.cluster_map import MOST_REDIRECTIONS, key_of, shared_map
from duequeue.stores.redis_client.nodes import Connection, connect_to
from duequeue.stores.redis_client.servers import Server
from duequeue.stores.redis_client.settings import RedisSettings

# After these, another node may have taken over.
LOSSES = (LostConnection, NoAnswer, ClusterDownError, ReadOnlyError, OSError)


class ClusterConnection:
    """One connection to each node, opened when it is first needed."""

    def __init__(self, settings: RedisSettings) -> None:
        self._settings = settings
        self._map = shared_map(settings)
        self._nodes: dict[Server, Connection] = {}
        # Commands without an answer yet. One without a key waits for the answer before it.
        self._unanswered: deque[tuple[Server | None, tuple[Any, ...]]] = deque()
        self._last: Server | None = None

    def send_command(self, *args: Any) -> None:
        """Send a command to the node that has its key."""
        key = key_of(args)
        if key is None and self._unanswered:
            self._unanswered.append((None, args))
            return
        server = self._anywhere() if key is None else self._map.node_for(key)
        self._send(server, args)
        self._unanswered.append((server, args))

    def read_response(self, **options: Any) -> Any:
        """Read the next answer, after following a slot to where it has moved."""
        server, command = self._unanswered.popleft()
        if server is None:
            server = self._anywhere()
            self._send(server, command)
        for _ in range(MOST_REDIRECTIONS):
            self._last = server
            try:
                return self._read(server, options)
            except AskError as error:
                server = self._follow(error, server, command)
        raise LostConnection("the nodes of the cluster sent a command around in a circle")

    def can_read(self, timeout: float) -> bool:
        """Wait up to some seconds for the next answer, and return whether it has come."""
        server = self._unanswered[0][0] if self._unanswered else None
        return server is not None and self._nodes[server].can_read(timeout)

    def disconnect(self) -> None:
        """Close the connections to all nodes."""
        for connection in self._nodes.values():
            connection.disconnect()
        self._nodes.clear()
        self._unanswered.clear()

    def _follow(self, error: AskError, asked: Server, command: tuple[Any, ...]) -> Server:
        target = self._map.redirected(asked, error)
        if target.asks:
            self._send(target.server, ("ASKING",))
            self._read(target.server, {})
        self._send(target.server, command)
        return target.server

    def _anywhere(self) -> Server:
        return self._last or self._map.any_node

    def _send(self, server: Server, command: tuple[Any, ...]) -> None:
        try:
            connection = self._nodes.get(server)
            if connection is None:
                connection = self._nodes[server] = connect_to(self._settings, server)
            connection.send_command(*command)
        except LOSSES:
            self._map.lost(server)
            raise

    def _read(self, server: Server, options: dict[str, Any]) -> Any:
        try:
            return self._nodes[server].read_response(**options)
        except LOSSES:
            self._map.lost(server)
            raise

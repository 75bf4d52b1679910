"""A blocking connection to a whole cluster: each command goes to the node that has its key."""

from collections import deque
from dataclasses import dataclass
from typing import Any

from redis.exceptions import AskError, ClusterDownError, ReadOnlyError, ResponseError
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as NoAnswer

from duequeue.stores.redis_client.cluster_map import (
    MOST_REDIRECTIONS,
    Redirection,
    key_of,
    shared_map,
)
from duequeue.stores.redis_client.nodes import Connection, connect_to
from duequeue.stores.redis_client.servers import Server
from duequeue.stores.redis_client.settings import RedisSettings

# After these, another node may have taken over.
LOSSES = (LostConnection, NoAnswer, ClusterDownError, ReadOnlyError, OSError)


@dataclass(slots=True)
class Sent:
    """A command, the node that it was sent to, and its answer once that was read."""

    command: tuple[Any, ...]
    server: Server | None
    is_read: bool = False
    answer: Any = None


class ClusterConnection:
    """One connection to each node, opened when it is first needed."""

    def __init__(self, settings: RedisSettings) -> None:
        self._settings = settings
        self._map = shared_map(settings)
        self._nodes: dict[Server, Connection] = {}
        # Commands whose answer nobody has taken yet. One without a key is sent when its turn comes.
        self._unanswered: deque[Sent] = deque()
        self._last: Server | None = None

    def send_command(self, *args: Any) -> None:
        """Send a command to the node that has its key."""
        key = key_of(args)
        if key is None and self._unanswered:
            self._unanswered.append(Sent(args, None))
            return
        server = self._anywhere() if key is None else self._map.node_for(key)
        self._send(server, args)
        self._unanswered.append(Sent(args, server))

    def read_response(self, **options: Any) -> Any:
        """Read the next answer, after following a slot to where it has moved."""
        sent = self._unanswered.popleft()
        target = Redirection(sent.server or self._anywhere(), asks=False)
        if sent.server is None:
            self._send_again(sent, target, options)
        for _ in range(MOST_REDIRECTIONS):
            self._last = target.server
            self._read_answer(sent, options)
            if isinstance(sent.answer, AskError):
                target = self._map.redirected(target.server, sent.answer)
                self._send_again(sent, target, options)
            elif isinstance(sent.answer, ResponseError):
                raise sent.answer
            else:
                return sent.answer
        raise LostConnection("the nodes of the cluster sent a command around in a circle")

    def can_read(self, timeout: float) -> bool:
        """Wait up to some seconds for the next answer, and return whether it has come."""
        if not self._unanswered:
            return False
        first = self._unanswered[0]
        server = first.server
        return first.is_read or (server is not None and self._nodes[server].can_read(timeout))

    def disconnect(self) -> None:
        """Close the connections to all nodes."""
        for connection in self._nodes.values():
            connection.disconnect()
        self._nodes.clear()
        self._unanswered.clear()

    def _send_again(self, sent: Sent, target: Redirection, options: dict[str, Any]) -> None:
        """Send a command after others, whose answers are read first, because they come first."""
        server = target.server
        for each in self._unanswered:
            if each.server == server:
                self._read_answer(each, options)
        if target.asks:
            self._send(server, ("ASKING",))
            self._read(server, options)
        self._send(server, sent.command)
        sent.server, sent.is_read = server, False

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

    def _read_answer(self, sent: Sent, options: dict[str, Any]) -> None:
        """Read the answer to a command, which may be an error, unless it was read before."""
        if sent.is_read or sent.server is None:
            return
        try:
            sent.answer = self._read(sent.server, options)
        except ResponseError as error:
            sent.answer = error
        sent.is_read = True

    def _read(self, server: Server, options: dict[str, Any]) -> Any:
        try:
            return self._nodes[server].read_response(**options)
        except LOSSES:
            self._map.lost(server)
            raise

"""A blocking connection to a whole cluster: each command goes to the node that has its key.

Nothing is asked in advance. A command whose node is not known goes to any node, which answers where
it belongs, and the next one goes there at once.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from redis.exceptions import AskError, ClusterDownError, MovedError, ReadOnlyError, ResponseError
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as NoAnswer

from duequeue.stores.redis_client.nodes import Connection, connect_to
from duequeue.stores.redis_client.settings import RedisSettings, Server, slot_of

# A slot that is moving causes one redirection or two; more would be a circle.
MOST_REDIRECTIONS = 5

# Commands without a key. They are about the command before them, and go to the same node.
_KEYLESS = {"CLUSTER", "CONFIG", "INFO", "PING", "SCRIPT", "WAIT", "WAITAOF"}

# After these, another node may have taken over.
LOSSES = (LostConnection, NoAnswer, ClusterDownError, ReadOnlyError, OSError)


class Redirection(NamedTuple):
    """Where a node says that a command belongs; with `asks`, ASKING has to be sent first."""

    server: Server
    asks: bool


class ClusterMap:
    """What the connections of a process know of one cluster.

    It needs no lock, because each change is a single assignment. If two threads overwrite each
    other's changes, the nodes send the same redirections again.
    """

    def __init__(self, servers: Iterable[Server]) -> None:
        # The first one is asked about slots of which nothing is known.
        self._servers = tuple(servers)
        self._owners: dict[int, Server] = {}

    def node_for(self, key: str | bytes) -> Server:
        """Return the node that has a key, or else one that will say which has it."""
        return self._owners.get(slot_of(key)) or self.any_node

    @property
    def any_node(self) -> Server:
        """A node that was not lost lately."""
        return self._servers[0]

    def redirected(self, asked: Server, error: AskError) -> Redirection:
        """Note what a node said about a slot; a slot that is still moving is not noted."""
        # A node without a name of its own has the host of the node that was asked.
        server = Server(error.host or asked.host, int(error.port))
        if server not in self._servers:
            self._servers = (*self._servers, server)
        has_moved = isinstance(error, MovedError)
        if has_moved:
            self._owners[int(error.slot_id)] = server
        return Redirection(server, asks=not has_moved)

    def lost(self, server: Server) -> None:
        """Forget what a node had; the others know who takes over."""
        self._owners = {slot: owner for slot, owner in self._owners.items() if owner != server}
        first, *others = self._servers
        if first == server:
            self._servers = (*others, first)


@lru_cache(maxsize=64)  # connections come and go, but what they learned stays
def shared_map(settings: RedisSettings) -> ClusterMap:
    """Return the map of this process for a cluster."""
    return ClusterMap(settings.servers)


def key_of(command: tuple[str | bytes, ...]) -> str | bytes | None:
    """Return the key that decides which node gets a command."""
    name = command[0]
    if name == "EVALSHA":
        return command[3]
    return None if name in _KEYLESS else command[1]


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

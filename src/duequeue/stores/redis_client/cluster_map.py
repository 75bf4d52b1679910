"""Which node of a cluster has which key, as far as the nodes have said.

Nothing is asked in advance. A command whose node is not known goes to any node, which answers where
it belongs, and the next one goes there at once.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from redis.exceptions import AskError, MovedError

from duequeue.stores.redis_client.servers import Server, slot_of
from duequeue.stores.redis_client.settings import RedisSettings

# A slot that is moving causes one redirection or two; more would be a circle.
MOST_REDIRECTIONS = 5

# Commands without a key. They are about the command before them, and go to the same node.
_KEYLESS = {"CLUSTER", "CONFIG", "INFO", "PING", "SCRIPT", "WAIT", "WAITAOF"}


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

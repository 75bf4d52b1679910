"""What a pool and its watchdog need to know of a server and its driver."""

from typing import Any, Protocol


class PooledConnection(Protocol):
    """A connection of a pool, of any driver."""

    idle_since: float


class PooledServer(Protocol):
    """A database that connections lead to; equal ones share a pool, so it can be hashed."""

    @property
    def pool_size(self) -> int:
        """How many connections may be in use at a time."""

    def __str__(self) -> str:
        """Return what it is and where, for people to read, without secrets."""

    def socket_of(self, connection: Any) -> int:
        """Return the file descriptor of a connection; raise OSError if it has none any more."""

    def is_lost(self, connection: Any) -> bool:
        """Return whether a connection broke, as others then probably have too."""

    def finish(self, connection: Any) -> None:
        """Close a connection at once, whatever it is doing."""

    def answers(self, seconds: int) -> bool:
        """Return whether it answers a new connection in time; a refusal is an answer too."""

    def __hash__(self) -> int:
        """Return a hash of the settings."""

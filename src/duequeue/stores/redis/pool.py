"""The connections of one process to one Redis, which its blocking queues share.

No interrupt, such as Ctrl-C or the exception of a signal handler, leaves the pool locked or short
of a connection. A permit that nobody gives back is replaced, and a connection that nobody gives
back is garbage, which closes it.
"""

import threading
from collections import deque
from functools import partial
from time import monotonic

from duequeue.errors import QueueClosed, StoreBusy
from duequeue.process.permits import Permit, Permits
from duequeue.process.shared import Shared
from duequeue.stores.redis_client.connecting import connect
from duequeue.stores.redis_client.nodes import Connection
from duequeue.stores.redis_client.settings import RedisSettings

# In seconds: how long a long operation waits for a connection.
LONGEST_WAIT = 10.0
# A connection whose time is already over still gets this long to be opened, for the next call.
SHORTEST_CONNECT = 0.1


class Pool:
    """At most `pool_size` connections in use, and those that are idle.

    No script waits for a lock, so a call gives its connection back as soon as it is answered, and
    calls that consume messages need no connection of their own.
    """

    def __init__(self, settings: RedisSettings) -> None:
        self.settings = settings
        self._permits = Permits(settings.pool_size)
        self._idle: deque[Connection] = deque()
        self._users = 0
        self._counting = threading.Lock()

    def join(self) -> None:
        """Count one more user."""
        with self._counting:
            self._users += 1

    def leave(self) -> None:
        """Count one user fewer, and close the idle connections after the last one."""
        with self._counting:
            self._users -= 1
        if not self._users:
            self.close_idle()

    def permit(self, seconds: float) -> Permit:
        """Wait for the right to use one connection."""
        began = monotonic()
        permit = self._permits.take(min(seconds, LONGEST_WAIT))
        if permit is None:
            raise StoreBusy(
                f"Redis at {self.settings.address}: waited {monotonic() - began:.3g} s for a "
                f"connection, but other calls use all {self.settings.pool_size}; "
                "a larger pool_size in the url allows more"
            )
        return permit

    def take(self, ends_at: float) -> Connection:
        """Return the connection that was used last, or else a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            if not self._users:
                raise QueueClosed("the queue was closed while this call ran") from None
            return connect(self.settings, max(ends_at - monotonic(), SHORTEST_CONNECT))

    def give(self, connection: Connection) -> None:
        """Keep a connection that has no unread answer."""
        self._idle.append(connection)
        if not self._users:
            self.close_idle()

    def close_idle(self) -> None:
        """Close the idle connections, because one was lost or nobody needs them."""
        while self._idle:
            try:
                self._idle.popleft().disconnect()
            except IndexError:  # another thread took it
                return


_pools: Shared[Pool] = Shared()


def shared_pool(settings: RedisSettings) -> Pool:
    """Return the pool of this process for these settings."""
    return _pools.get(settings, partial(Pool, settings))

"""Runs operations on Redis, blocking, on connections that the queues of one process share.

No interrupt, such as Ctrl-C or the exception of a signal handler, leaves the pool locked or short
of a connection. A permit that nobody gives back is replaced, and a connection that nobody gives
back is garbage, which closes it.
"""

import threading
from collections import deque
from collections.abc import Sequence
from functools import partial
from math import inf
from time import monotonic
from typing import TypeVar

from redis.exceptions import NoScriptError, RedisError, ResponseError

from duequeue.drive.steps import drive
from duequeue.errors import QueueClosed, StoreBusy
from duequeue.port.store import Operation
from duequeue.process.permits import Permit, Permits
from duequeue.process.shared import Shared
from duequeue.stores.redis.commands import LOAD, Question, Script
from duequeue.stores.redis.connections.durability import (
    barrier,
    looks_before_waits,
    require_confirmed,
    slots_to_confirm,
    wait_words,
)
from duequeue.stores.redis.connections.errors import leaves_it_usable, no_answer, translate
from duequeue.stores.redis_client.connecting import connect
from duequeue.stores.redis_client.nodes import ANSWER_WITHIN, Connection
from duequeue.stores.redis_client.settings import Durable, RedisSettings
from duequeue.stores.shards import Together

# In seconds: how long a long operation waits for a connection.
LONGEST_WAIT = 10.0
# A connection whose time is already over still gets this long to be opened, for the next call.
SHORTEST_CONNECT = 0.1

T = TypeVar("T")

# By how many seconds the limit of a connection may exceed that of a call.
TOLERANCE = 0.5


class RedisPool:
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


_pools: Shared[RedisPool] = Shared()


def shared_pool(settings: RedisSettings) -> RedisPool:
    """Return the pool of this process for these settings."""
    return _pools.get(settings, partial(RedisPool, settings))


class RedisSession:
    """Runs each operation on a connection of the pool that this process shares."""

    def __init__(self, settings: RedisSettings) -> None:
        self._settings = settings
        self._pool = shared_pool(settings)
        self._pool.join()
        self._durable = settings.durable
        self._closed = False

    def run(self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False) -> T:  # noqa: ARG002 - no script waits for a lock
        """Run one operation; each script is a transaction of its own."""
        ends_at = monotonic() + seconds
        permit = self._pool.permit(seconds)
        try:
            return self._run(operation, ends_at)
        except (RedisError, OSError) as error:
            raise translate(error, self._settings, seconds) from error
        finally:
            permit.give_back()

    def close(self) -> None:
        """Leave the pool, which closes with its last user."""
        if not self._closed:
            self._closed = True
            self._pool.leave()

    def _run(self, operation: Operation[T], ends_at: float) -> T:
        pool = self._pool
        try:
            connection = pool.take(ends_at)
        except (RedisError, OSError):
            pool.close_idle()
            raise
        try:
            result = drive(operation(), partial(self._perform, connection, ends_at))
        except BaseException as error:
            if leaves_it_usable(error):
                pool.give(connection)
            else:
                connection.disconnect()
                if isinstance(error, RedisError | OSError):
                    pool.close_idle()  # the others lead to the same lost server
            raise
        pool.give(connection)
        return result

    def _perform(
        self, connection: Connection, ends_at: float, command: Script | Together | Question
    ) -> object:
        if isinstance(command, Question):
            connection.send_command(*command.words)
            return _read(connection, ends_at)
        if isinstance(command, Together):
            reply: object = _answer_all(connection, ends_at, command.commands)
        else:
            reply = answer(connection, ends_at, command)
        if self._durable is not Durable.NOTHING:
            self._confirm(connection, ends_at, slots_to_confirm(command))
        return reply

    def _confirm(self, connection: Connection, ends_at: float, slots: list[bytes]) -> None:
        """Wait until what was changed before is as durable as the URL demands."""
        for slot in slots:
            answer(connection, ends_at, barrier(slot))
        for look in looks_before_waits(self._settings, slots):
            if look is not None:
                connection.send_command(*look)
                _read(connection, ends_at)
            connection.send_command(*wait_words(self._durable, ends_at - monotonic()))
            require_confirmed(self._durable, _read(connection, ends_at))


def answer(connection: Connection, ends_at: float, command: Script) -> object:
    """Send a script and return its reply; load it if the server does not know it.

    A server forgets its scripts when it restarts, and one that takes over has none.
    """
    words = command.words
    try:
        connection.send_command(*words)
        return _read(connection, ends_at)
    except NoScriptError:
        connection.send_command(*LOAD, command.code.text)
        _read(connection, ends_at)
        connection.send_command(*words)
        return _read(connection, ends_at)


def _answer_all(connection: Connection, ends_at: float, commands: Sequence[Script]) -> list[object]:
    """Send all scripts before the first reply is read; the first error is raised after the last."""
    for command in commands:
        connection.send_command(*command.words)
    replies: list[object] = []
    errors: list[ResponseError] = []
    for _ in commands:
        try:
            replies.append(_read(connection, ends_at))
        except NoScriptError as error:
            replies.append(error)
        except ResponseError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return [
        answer(connection, ends_at, command) if isinstance(reply, NoScriptError) else reply
        for command, reply in zip(commands, replies, strict=True)
    ]


def _read(connection: Connection, ends_at: float) -> object:
    left = ends_at - monotonic()
    if left <= 0:
        raise no_answer(left)
    if left > ANSWER_WITHIN - TOLERANCE:
        return connection.read_response()  # the connection's own limit, which costs nothing
    return connection.read_response(timeout=left)

"""Wake-ups between processes: named locks say who waits, and KILL QUERY wakes them.

A process that waits holds a named lock for each of its queues, on a connection that sleeps on the
server. A producer looks up who holds the locks, and ends their sleep. That needs no privilege if
all processes log in as the same user. Where it does not work, messages are found by polling.
"""

import logging
from contextlib import closing, suppress
from hashlib import blake2b

from duequeue.process.line import ANSWER_WITHIN, Line
from duequeue.stores.mailbox import Mailbox, Notes, Wire
from duequeue.stores.sql.connections.watchdog import WatchedPlace
from duequeue.stores.sql.mariadb.connections import MariadbConnection, connect
from duequeue.stores.sql.mariadb.errors import DRIVER_ERRORS, number_of
from duequeue.stores.sql.mariadb.server import MariadbServer
from duequeue.stores.sql.mariadb.settings import MariadbSettings

# How many processes can wait for messages of one queue and be woken; the others poll.
SLOTS = 16
# How long a connection sleeps on the server, in seconds. This is also how soon it notices another
# queue that has begun to wait.
SLEEP_SECONDS = 2

INTERRUPTED = 1317
NO_SUCH_CONNECTION = 1094
NOT_ITS_OWNER = 1095


class MariadbWire(Wire[MariadbConnection]):
    """Ends the sleep of others without a message, so only the queue of a note matters."""

    logger = logging.getLogger("duequeue.mariadb")

    def __init__(self, settings: MariadbSettings) -> None:
        self._settings = settings
        self.place = settings.place
        self.address = str(settings.address)

    def connect(self) -> closing[MariadbConnection]:
        """Open a connection outside the pool."""
        return closing(connect(self._watched(), self._settings))

    def send(
        self,
        box: Mailbox[MariadbConnection],
        connection: MariadbConnection,
        notes: Notes,
    ) -> None:
        """Wake all others who wait on these queues."""
        own = {each.facts.number for each in box.ears()}
        with self._watched().limit(connection, ANSWER_WITHIN):
            for kind in {kind for kind, _ in notes}:
                _wake(connection, kind, own)

    def is_lost(self, connection: MariadbConnection, error: Exception) -> bool:  # noqa: ARG002 - the connection knows
        """Return whether the connection is; otherwise the server refuses, and would do so again."""
        return connection.is_lost()

    def hear(
        self,
        box: Mailbox[MariadbConnection],
        line: Line[MariadbConnection],
        connection: MariadbConnection,
    ) -> None:
        """Sleep on the server, and have the queues look when somebody ends the sleep."""
        held: dict[str, str] = {}
        rung = False
        line.works()
        while not line.closed.is_set():
            with self._watched().limit(connection, SLEEP_SECONDS + ANSWER_WITHIN):
                # Somebody may have looked for this process before it held a new lock.
                must_look = _change_locks(connection, held, box.awaited()) or rung
                # The consumers look after the sleep has begun, because it cannot be ended before.
                connection.send_only(f"SELECT SLEEP({SLEEP_SECONDS})")
                if must_look:
                    box.alert(held)
                rung = _was_ended(connection)

    def cut(self, connection: MariadbConnection) -> None:
        """End the sleep."""
        with suppress(*DRIVER_ERRORS, OSError, AttributeError):
            connection.cut()

    def _watched(self) -> WatchedPlace:
        return WatchedPlace(MariadbServer(self._settings))


def _wake(connection: MariadbConnection, kind: str, own: set[int]) -> None:
    """End the sleep of everybody who waits on a queue, except for our own connections."""
    looks = ", ".join(
        f"IS_USED_LOCK('{name}')" for name in lock_names(connection.database_name, kind)
    )
    # The driver takes long to read the description of each column.
    (reply,) = connection.send([f"SELECT CONCAT_WS(',', {looks})"])
    ((holders,),) = reply.rows or [("",)]
    for number in {*map(int, filter(None, holders.split(",")))} - own:
        try:
            connection.send([f"KILL QUERY {number}"])
        except DRIVER_ERRORS as error:
            if number_of(error) not in {NO_SUCH_CONNECTION, NOT_ITS_OWNER}:
                raise


def _change_locks(connection: MariadbConnection, held: dict[str, str], awaited: set[str]) -> bool:
    """Hold a lock for each kind that is awaited, if one is free; return whether any is new."""
    for kind in held.keys() - awaited:
        connection.send([f"DO RELEASE_LOCK('{held.pop(kind)}')"])
    is_new = False
    for kind in awaited - held.keys():
        if (name := _take_lock(connection, kind)) is not None:
            held[kind], is_new = name, True
    return is_new


def lock_names(database: str, kind: str) -> list[str]:
    """Return the names of the locks of those who wait; they belong to the whole server."""
    digest = blake2b(f"{database}\0{kind}".encode(), digest_size=16).hexdigest()
    return [f"duequeue.{digest}.{slot}" for slot in range(SLOTS)]


def _take_lock(connection: MariadbConnection, kind: str) -> str | None:
    """Take the first free lock of a kind, and return its name; None if others hold all of them."""
    names = lock_names(connection.database_name, kind)
    cases = " ".join(f"WHEN GET_LOCK('{name}', 0) THEN '{name}'" for name in names)
    (reply,) = connection.send([f"SELECT CASE {cases} END AS taken"])
    taken: str | None = (reply.rows or [(None,)])[0][0]
    return taken


def _was_ended(connection: MariadbConnection) -> bool:
    """Wait for the end of a sleep, and return whether somebody ended it."""
    try:
        return connection.receive().rows == [(1,)]
    except DRIVER_ERRORS as error:
        if number_of(error) != INTERRUPTED:
            raise
        return True

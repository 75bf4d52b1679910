"""Wake-ups between processes: named locks say who waits, and KILL QUERY wakes them.

A process that waits holds a named lock for each of its queues, on a connection that sleeps on the
server. A producer looks up who holds the locks, and ends their sleep. That needs no privilege if
all processes log in as the same user. Where it does not work, messages are found by polling.
"""

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from hashlib import blake2b
from queue import SimpleQueue

from duequeue.port.alerts import OnAlert
from duequeue.process import line as lines
from duequeue.process.line import ANSWER_WITHIN
from duequeue.process.shared import Shared
from duequeue.stores.sql.mariadb.connections import MariadbConnection, connect
from duequeue.stores.sql.mariadb.errors import DRIVER_ERRORS, number_of
from duequeue.stores.sql.mariadb.server import MariadbServer
from duequeue.stores.sql.mariadb.settings import MariadbSettings
from duequeue.stores.sql.pooling.watchdog import WatchedPlace

logger = logging.getLogger("duequeue.mariadb")

# How many processes can wait for messages of one queue and be woken; the others poll.
SLOTS = 16
# How long a connection sleeps on the server, in seconds. This is also how soon it notices another
# queue that has begun to wait.
SLEEP_SECONDS = 2
# A busy producer looks for waiting processes this often, in seconds, and not after every offer.
SEND_EVERY = 0.005

INTERRUPTED = 1317
NO_SUCH_CONNECTION = 1094
NOT_ITS_OWNER = 1095


class Line(lines.Line[MariadbConnection]):
    """A line to MariaDB."""

    def __init__(
        self, settings: MariadbSettings, work: Callable[["Line", MariadbConnection], None]
    ) -> None:
        self._settings = settings
        self.place = WatchedPlace(MariadbServer(settings))
        super().__init__(settings.place, str(settings.address), logger, self._open, work)

    def _open(self) -> closing[MariadbConnection]:
        return closing(connect(WatchedPlace(MariadbServer(self._settings)), self._settings))


class SharedLines:
    """The lines of one process to one database, which its queues share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: defaultdict[str, list[OnAlert]] = defaultdict(list)
        self._awaited: set[str] = set()
        self._unsent: dict[str, None] = {}
        # This queue is written in C, so that an interrupt of an offer cannot occur inside it.
        self._something_to_send: SimpleQueue[None] = SimpleQueue()
        self._sending: Line | None = None
        self._hearing: Line | None = None

    def add(self, kind: str, on_alert: OnAlert) -> None:
        """Connect a queue."""
        with self._lock:
            self._listeners[kind].append(on_alert)

    def remove(self, kind: str, on_alert: OnAlert) -> None:
        """Disconnect a queue; after the last one, send what is left and close the lines."""
        with self._lock:
            self._listeners[kind].remove(on_alert)
            if not self._listeners[kind]:
                del self._listeners[kind]
                self._awaited.discard(kind)
            if self._listeners:
                return
            sending, self._sending = self._sending, None
            hearing, self._hearing = self._hearing, None
        for each in (sending, hearing):
            if each is not None:
                each.closed.set()
        self._something_to_send.put(None)
        if hearing is not None:
            with suppress(*DRIVER_ERRORS, OSError, AttributeError):
                hearing.connection.cut()  # type: ignore[union-attr]
            hearing.close()
        if sending is not None:
            sending.close()

    def notify(self, settings: MariadbSettings, kind: str) -> None:
        """Have those who wait for messages of a kind woken, soon."""
        with self._lock:
            if kind not in self._listeners:
                return  # the queue was closed while this offer ran
            self._note([kind])
            self._sending = self._sending or Line(settings, self._send)

    def listen(self, settings: MariadbSettings, kind: str) -> None:
        """Open the line on which the others wake this process."""
        if kind in self._awaited:
            return
        with self._lock:
            if kind in self._listeners:  # otherwise the queue was closed while this poll ran
                self._awaited.add(kind)
                self._hearing = self._hearing or Line(settings, self._hear)

    def _send(self, line: Line, connection: MariadbConnection) -> None:
        line.works()
        while not line.closed.is_set() or self._unsent:
            self._something_to_send.get()
            with self._lock:
                kinds, self._unsent = self._unsent, {}
            try:
                with line.place.limit(connection, ANSWER_WITHIN):
                    for kind in kinds:
                        self._wake(connection, kind)
            except Exception:
                if connection.is_lost():  # otherwise the server refuses, and would do so again
                    with self._lock:
                        self._note(kinds)  # these wake-ups are sent on the next connection
                raise
            line.closed.wait(SEND_EVERY)

    def _note(self, kinds: Iterable[str]) -> None:
        if not self._unsent:
            self._something_to_send.put(None)
        self._unsent |= dict.fromkeys(kinds)

    def _wake(self, connection: MariadbConnection, kind: str) -> None:
        """End the sleep of everybody who waits for messages of a kind, except this process."""
        database = connection.database_name
        looks = ", ".join(f"IS_USED_LOCK('{name}')" for name in lock_names(database, kind))
        # The driver takes long to read the description of each column.
        (reply,) = connection.send([f"SELECT CONCAT_WS(',', {looks})"])
        hearing = self._hearing.connection if self._hearing is not None else None
        own = None if hearing is None else hearing.facts.number
        ((holders,),) = reply.rows or [("",)]
        for number in map(int, filter(None, holders.split(","))):
            if number != own:
                try:
                    connection.send([f"KILL QUERY {number}"])
                except DRIVER_ERRORS as error:
                    if number_of(error) not in {NO_SUCH_CONNECTION, NOT_ITS_OWNER}:
                        raise

    def _hear(self, line: Line, connection: MariadbConnection) -> None:
        held: dict[str, str] = {}
        rung = False
        line.works()
        while not line.closed.is_set():
            with line.place.limit(connection, SLEEP_SECONDS + ANSWER_WITHIN):
                # Somebody may have looked for this process before it held a new lock.
                must_look = self._change_locks(connection, held) or rung
                # The consumers look after the sleep has begun, because it cannot be ended before.
                connection.send_only(f"SELECT SLEEP({SLEEP_SECONDS})")
                if must_look:
                    self._alert(held)
                rung = _was_ended(connection)

    def _change_locks(self, connection: MariadbConnection, held: dict[str, str]) -> bool:
        """Hold a lock for each kind that is awaited, if one is free; return whether any is new."""
        with self._lock:
            awaited = set(self._awaited)
        for kind in held.keys() - awaited:
            connection.send([f"DO RELEASE_LOCK('{held.pop(kind)}')"])
        is_new = False
        for kind in awaited - held.keys():
            if (name := _take_lock(connection, kind)) is not None:
                held[kind], is_new = name, True
        return is_new

    def _alert(self, kinds: Iterable[str]) -> None:
        with self._lock:
            listeners = [each for kind in kinds for each in self._listeners.get(kind, ())]
        for on_alert in listeners:
            on_alert(None)


shared_lines = Shared(SharedLines)


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


class MariadbAlerts:
    """One queue on the shared lines; see `port.alerts.Alerts`."""

    waiting = None  # a wake-up goes to everybody

    def __init__(self, settings: MariadbSettings, kind: str, on_alert: OnAlert) -> None:
        self._settings = settings
        self._kind = kind
        self._on_alert = on_alert
        self._lines = shared_lines.get(settings.place)
        self._lines.add(kind, on_alert)

    def sender(self) -> None:
        """Return None, because a commit cannot wake anybody."""

    def notify(self, due_at: int) -> None:  # noqa: ARG002 - a sleep is ended without a message
        """Wake the others soon."""
        self._lines.notify(self._settings, self._kind)

    def notify_answered(self, keys: Sequence[str]) -> None:  # noqa: ARG002 - likewise
        """Wake the others soon."""
        self._lines.notify(self._settings, self._kind)

    def listen(self, seconds: float) -> None:  # noqa: ARG002 - the line stays until the queue is closed
        """Keep a connection asleep on the server."""
        self._lines.listen(self._settings, self._kind)

    def listen_for_answers(self, seconds: float) -> None:
        """Listen as for messages."""
        self.listen(seconds)

    def close(self) -> None:
        """Leave the shared lines."""
        self._lines.remove(self._kind, self._on_alert)

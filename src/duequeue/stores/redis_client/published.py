"""Wake-ups through Redis for another store, whose database cannot send them itself.

Every process that waits hears every note on one channel. Databases may share a Redis, because a
note about a queue of the same name in another database only causes a look that finds nothing.
"""

import os
import secrets
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue

from duequeue.port.alerts import Alert, Answered, OnAlert
from duequeue.process.line import ANSWER_WITHIN
from duequeue.process.shared import Shared
from duequeue.stores.redis_client.cluster import LOSSES
from duequeue.stores.redis_client.cluster_map import shared_map
from duequeue.stores.redis_client.nodes import Connection
from duequeue.stores.redis_client.settings import RedisSettings, Way
from duequeue.stores.redis_client.wire import Line

# A busy producer sends a few hundred notes per second instead of one with every offer.
SEND_EVERY = 0.005

# A note about a response begins with this; then come the sender, the length of the kind, the kind
# and the key.
ANSWERED = "="

_PROCESS = secrets.token_hex(4)


class PublishedLines:
    """The lines of one process to one Redis, which its queues share."""

    def __init__(self) -> None:
        # By this name a process knows its own notes; a fork has a name and lines of its own.
        self._name = f"{_PROCESS}-{os.getpid()}"
        self._lock = threading.Lock()
        self._queues: defaultdict[str, list[OnAlert]] = defaultdict(list)
        self._unsent: dict[str, int] = {}
        self._unsent_keys: set[tuple[str, str]] = set()
        self._something_to_send: SimpleQueue[None] = SimpleQueue()
        self._sending: Line | None = None
        self._hearing: Line | None = None

    def add(self, kind: str, on_alert: OnAlert) -> None:
        """Connect a queue."""
        with self._lock:
            self._queues[kind].append(on_alert)

    def remove(self, kind: str, on_alert: OnAlert) -> None:
        """Disconnect a queue; after the last one, send what is left and close the lines."""
        with self._lock:
            self._queues[kind].remove(on_alert)
            if not self._queues[kind]:
                del self._queues[kind]
            if self._queues:
                return
            lines = [line for line in (self._sending, self._hearing) if line is not None]
            self._sending = self._hearing = None
        for line in lines:
            line.closed.set()
        self._something_to_send.put(None)
        for line in lines:
            line.close()

    def notify(self, settings: RedisSettings, kind: str, due_at: int) -> None:
        """Have a due time published; if several wait to be sent, only the earliest is."""
        with self._lock:
            if kind not in self._queues:
                return  # the queue was closed while this offer ran
            self._note(kind, due_at)
            self._sending = self._sending or _line(settings, self._send)

    def notify_answered(self, settings: RedisSettings, kind: str, keys: Iterable[str]) -> None:
        """Have the keys of responses published."""
        with self._lock:
            if kind in self._queues:
                self._note_keys((kind, key) for key in keys)
                self._sending = self._sending or _line(settings, self._send)

    def listen(self, settings: RedisSettings) -> None:
        """Open the line that hears the notes of the others."""
        with self._lock:
            if self._queues:  # otherwise the queue was closed while this poll ran
                self._hearing = self._hearing or _line(settings, self._hear)

    def _send(self, line: Line, connection: Connection) -> None:
        line.works()
        channel = channel_of(line.settings)
        while not line.closed.is_set() or self._unsent or self._unsent_keys:
            self._something_to_send.get()
            with self._lock:
                to_send, self._unsent = self._unsent, {}
                keys, self._unsent_keys = self._unsent_keys, set()
            notes = [f"{self._name} {due_at} {kind}" for kind, due_at in to_send.items()]
            notes += [f"{ANSWERED}{self._name} {len(kind)} {kind}{key}" for kind, key in keys]
            try:
                for note in notes:
                    connection.send_command("PUBLISH", channel, note)
                    connection.read_response(timeout=ANSWER_WITHIN)
            except LOSSES:
                with self._lock:
                    for kind, due_at in to_send.items():  # they are sent on the next connection
                        self._note(kind, due_at)
                    self._note_keys(keys)
                raise
            line.closed.wait(SEND_EVERY)

    def _note(self, kind: str, due_at: int) -> None:
        if not (self._unsent or self._unsent_keys):
            self._something_to_send.put(None)
        self._unsent[kind] = min(due_at, self._unsent.get(kind, due_at))

    def _note_keys(self, keys: Iterable[tuple[str, str]]) -> None:
        if not (self._unsent or self._unsent_keys):
            self._something_to_send.put(None)
        self._unsent_keys.update(keys)

    def _hear(self, line: Line, connection: Connection) -> None:
        line.subscribe(connection, channel_of(line.settings))
        for kind in list(self._queues):
            self._alert(kind, None)  # for the notes that were sent before this line was open
        for note in line.messages(connection):
            self._hear_one(note)

    def _hear_one(self, note: str) -> None:
        sender, number, text = note.split(" ", 2)
        if sender.removeprefix(ANSWERED) == self._name:
            return
        if sender.startswith(ANSWERED):
            length = int(number)
            self._alert(text[:length], Answered(text[length:]))
        else:
            self._alert(text, int(number))

    def _alert(self, kind: str, alert: Alert) -> None:
        with self._lock:
            listeners = list(self._queues.get(kind, ()))
        for on_alert in listeners:
            on_alert(alert)


_shared_lines = Shared(PublishedLines)


class PublishedAlerts:
    """One queue on the shared lines; see `port.alerts.Alerts`."""

    waiting = None  # a wake-up goes to everybody

    def __init__(self, settings: RedisSettings, kind: str, on_alert: OnAlert) -> None:
        self._settings = settings
        self._kind = kind
        self._on_alert = on_alert
        self._lines = _shared_lines.get(settings.place)
        self._lines.add(kind, on_alert)

    def sender(self) -> None:
        """Return None, because the commit of the database cannot publish."""

    def notify(self, due_at: int) -> None:
        """Publish soon."""
        self._lines.notify(self._settings, self._kind, due_at)

    def notify_answered(self, keys: Sequence[str]) -> None:
        """Publish soon."""
        self._lines.notify_answered(self._settings, self._kind, keys)

    def listen_for_answers(self, seconds: float) -> None:
        """Keep the line open."""
        self.listen(seconds)

    def listen(self, seconds: float) -> None:  # noqa: ARG002 - the line stays until the queue is closed
        """Keep the line open."""
        self._lines.listen(self._settings)

    def close(self) -> None:
        """Leave the shared lines."""
        self._lines.remove(self._kind, self._on_alert)


def channel_of(settings: RedisSettings) -> str:
    """Return the channel, which all databases of a Redis would share otherwise."""
    return f"dq:alerts:{settings.database}"


def _line(settings: RedisSettings, work: Callable[[Line, Connection], None]) -> Line:
    return (_ClusterLine if settings.way is Way.CLUSTER else Line)(settings, work)


class _ClusterLine(Line):
    """A line to any node of a cluster, because each passes on to all what is published."""

    @contextmanager
    def _open(self) -> Iterator[Connection]:
        known = shared_map(self.settings)
        self.node = known.any_node
        try:
            with super()._open() as connection:
                yield connection
        except LOSSES:
            known.lost(self.node)  # so that another one is tried
            raise

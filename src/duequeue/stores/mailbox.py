"""The wake-ups of one process through one server: who is to be woken, and what is to be sent.

Every store whose server passes on notes between processes keeps its books here, and brings only
its wire.
"""

import logging
import os
import secrets
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from queue import SimpleQueue
from time import monotonic
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from duequeue.port.alerts import Alert, Alerts, Answered, OnAlert
from duequeue.process.line import Line
from duequeue.process.shared import Shared

C = TypeVar("C")

# A busy producer sends a few hundred notes per second instead of one with every offer.
SEND_EVERY = 0.005

_PROCESS = secrets.token_hex(4)

# A queue, and the key of a response or None for a message; and when the earliest message is due.
Notes: TypeAlias = dict[tuple[str, str | None], int]


# No process has a name that begins like this. A version that does not know these notes takes one
# for a message of a queue that it does not have, and ignores it.
_ANSWERED = "="


class Note(NamedTuple):
    """A wake-up on its way between two processes, and its text."""

    sender: str
    alert: int | Answered
    kind: str

    def __str__(self) -> str:
        sender, alert, kind = self
        if isinstance(alert, Answered):
            return f"{_ANSWERED}{sender} {len(kind)} {kind}{alert.key}"
        return f"{sender} {alert} {kind}"

    @classmethod
    def parse(cls, text: str) -> "Note":
        """Parse the text of a note; raise ValueError for any other text."""
        sender, number, rest = text.split(" ", 2)
        if not sender.startswith(_ANSWERED):
            return cls(sender, int(number), rest)
        length = int(number)
        return cls(sender.removeprefix(_ANSWERED), Answered(rest[length:]), rest[:length])


class Wire(ABC, Generic[C]):
    """How notes get to other processes, and from them, through one kind of server."""

    place: str
    address: str
    logger: logging.Logger
    # How long a line rests after it has sent something.
    rest = SEND_EVERY
    # Whether a commit of the store can send a note by itself.
    sends_with_commits = False
    # Whether notes of others arrive at all.
    hears = True
    # Whether the nodes at which they arrive change.
    moves = False
    # After these errors, notes that were not sent have to be sent on another connection.
    losses: tuple[type[Exception], ...]

    @abstractmethod
    def connect(self) -> AbstractContextManager[C]:
        """Open a connection for a line."""

    @abstractmethod
    def send(self, box: "Mailbox[C]", connection: C, notes: Notes) -> None:
        """Send notes to all other processes."""

    @abstractmethod
    def hear(self, box: "Mailbox[C]", line: Line[C], connection: C) -> None:
        """Pass on the notes of others until the line is closed."""

    def clean(self, text: str) -> str:
        """Remove the secrets from a driver's message."""
        return text

    def is_lost(self, connection: C, error: Exception) -> bool:  # noqa: ARG002 - the error says enough
        """Return whether an error has ended a connection."""
        return isinstance(error, self.losses)

    def ends(self, kinds: Iterable[str]) -> dict[Hashable, "Wire[C]"]:  # noqa: ARG002 - there is one server
        """Return a wire to each node at which notes about queues arrive."""
        return {None: self}

    def prepare(self, connection: C) -> None:
        """Make a connection ready to send."""

    def cut(self, connection: C) -> None:
        """End what a line that hears waits for, because it is closed."""


class Mailbox(Generic[C]):
    """The queues of a process on one server, and the notes that wait to be sent."""

    def __init__(self, name: str | None = None) -> None:
        # By this name a process knows its own notes; a fork has a name and lines of its own.
        self.name = name or f"{_PROCESS}-{os.getpid()}"
        self._lock = threading.Lock()
        self._queues: defaultdict[str, list[OnAlert]] = defaultdict(list)
        # The queues on which somebody has waited, and whether it was for responses.
        self._awaited: set[tuple[str, bool]] = set()
        self._unsent: Notes = {}
        self._sent_at: dict[str, float] = {}
        # This queue is written in C, so that an interrupt of an offer cannot occur inside it.
        self._something_to_send: SimpleQueue[None] = SimpleQueue()
        self._sending: Line[C] | None = None
        self._hearing: dict[Hashable, Line[C]] = {}

    def join(self, kind: str, on_alert: OnAlert) -> None:
        """Connect a queue."""
        with self._lock:
            self._queues[kind].append(on_alert)

    def leave(self, wire: Wire[C], kind: str, on_alert: OnAlert) -> None:
        """Disconnect a queue; after the last one, send what is left and close the lines."""
        with self._lock:
            self._queues[kind].remove(on_alert)
            if not self._queues[kind] and (notes := self._forget(kind)):
                self._add(notes)
                self._sending = self._sending or self._open_sending(wire)
            if self._queues:
                return
            hearing, self._hearing = [*self._hearing.values()], {}
            sending, self._sending = [self._sending] if self._sending else [], None
        for line in hearing + sending:
            line.closed.set()
        self._something_to_send.put(None)
        for line in hearing:
            if (connection := line.connection) is not None:
                wire.cut(connection)
        for line in hearing + sending:
            line.close()

    def takes_turn(self, kind: str) -> bool:
        """Return whether a commit may send a note, because none about this queue was just sent."""
        now = monotonic()
        with self._lock:
            if (kind, None) in self._unsent or now < self._sent_at.get(kind, 0.0) + SEND_EVERY:
                return False
            self._sent_at[kind] = now
        return True

    def note(self, wire: Wire[C], kind: str, alert: int | Answered) -> None:
        """Have a note sent; if several due times wait to be sent, only the earliest is."""
        notes: Notes
        notes = {(kind, alert.key): 0} if isinstance(alert, Answered) else {(kind, None): alert}
        with self._lock:
            if self._queues:  # otherwise the last one was closed while this call ran
                self._add(notes)
                self._sending = self._sending or self._open_sending(wire)

    def listen(self, wire: Wire[C], kind: str, *, for_answers: bool = False) -> list[Line[C]]:
        """Open the lines that hear the notes of others, and close those that nobody needs.

        The first time, return the lines that were there before, which may have missed a note.
        """
        about = (kind, for_answers)
        with self._lock:
            is_first = about not in self._awaited
            # Otherwise the queue was closed while this poll ran, or every line is there.
            if kind in self._queues and (is_first or wire.moves):
                known = [*self._hearing.values()]
                self._hear_at(wire.ends({kind, *self._awaited_kinds()}))
                self._awaited.add(about)  # last, so that a poll tries again after an error
                return known if is_first else []
        return []

    def awaited(self) -> set[str]:
        """Return the queues on which somebody has waited."""
        with self._lock:
            return self._awaited_kinds()

    def ears(self) -> list[C]:
        """Return the connections on which this process hears the others."""
        with self._lock:
            lines = [*self._hearing.values()]
        return [each for line in lines if (each := line.connection) is not None]

    def texts(self, notes: Notes) -> list[str]:
        """Return the texts of notes of this process."""
        return [
            str(Note(self.name, due_at if key is None else Answered(key), kind))
            for (kind, key), due_at in notes.items()
        ]

    def alert(self, kinds: Iterable[str], alert: Alert = None) -> None:
        """Pass an alert on to the queues of these kinds."""
        with self._lock:
            listeners = [each for kind in kinds for each in self._listeners(kind)]
        for on_alert in listeners:
            on_alert(alert)

    def alert_all(self) -> None:
        """Have every queue look, because what came before a line was open was not heard."""
        self.alert(list(self._queues))

    def hear(self, note: Note) -> None:
        """Pass a note on, unless it is our own."""
        if note.sender != self.name:
            self.alert([note.kind], note.alert)

    def _listeners(self, kind: str) -> list[OnAlert]:
        return self._queues.get(kind, [])

    def _awaited_kinds(self) -> set[str]:
        return {kind for kind, _ in self._awaited}

    def _forget(self, kind: str) -> Notes:
        """Forget a queue that has nobody left, and return what is left to be sent about it."""
        del self._queues[kind]
        self._sent_at.pop(kind, None)
        self._awaited -= {(kind, False), (kind, True)}
        return {}

    def _add(self, notes: Notes) -> None:
        if not self._unsent:
            self._something_to_send.put(None)
        for about, due_at in notes.items():
            self._unsent[about] = min(due_at, self._unsent.get(about, due_at))

    def _open_sending(self, wire: Wire[C]) -> Line[C]:
        return open_line(wire, partial(self._send, wire))

    def _hear_at(self, ends: dict[Hashable, Wire[C]]) -> None:
        for node in self._hearing.keys() - ends.keys():
            self._hearing.pop(node).closed.set()
        for node in ends.keys() - self._hearing.keys():
            self._hearing[node] = open_line(ends[node], partial(self._hear, ends[node]))

    def _hear(self, wire: Wire[C], line: Line[C], connection: C) -> None:
        wire.hear(self, line, connection)

    def _send(self, wire: Wire[C], line: Line[C], connection: C) -> None:
        wire.prepare(connection)
        line.works()
        while not line.closed.is_set() or self._unsent:
            self._something_to_send.get()
            notes = self._take_unsent()
            try:
                wire.send(self, connection, notes)
            except Exception as error:
                if notes and wire.is_lost(connection, error):
                    with self._lock:
                        self._add(notes)  # they are sent on the next connection
                raise
            line.closed.wait(wire.rest)

    def _take_unsent(self) -> Notes:
        with self._lock:
            notes, self._unsent = self._unsent, {}
            now = monotonic()
            sent = {kind: now for kind, key in notes if key is None and kind in self._queues}
            self._sent_at |= sent
        return notes


def open_line(wire: Wire[C], work: Callable[[Line[C], C], None]) -> Line[C]:
    """Open a line, on which `work` runs."""
    return Line(wire, wire.connect, work)


_mailboxes: Shared[Mailbox[Any]] = Shared(Mailbox)


class MailboxAlerts(Alerts):
    """One queue on the mailbox that its process shares; see `port.alerts.Alerts`."""

    def __init__(
        self, wire: Wire[Any], kind: str, on_alert: OnAlert, box: Mailbox[Any] | None = None
    ) -> None:
        self._wire = wire
        self._kind = kind
        self._on_alert = on_alert
        self._box = box or _mailboxes.get((type(wire), wire.place))
        self._box.join(kind, on_alert)

    def sender(self) -> str | None:
        """Return a name now and then for a busy producer, which uses `notify` otherwise."""
        if self._wire.sends_with_commits and self._box.takes_turn(self._kind):
            return self._box.name
        return None

    def notify(self, alert: int | Answered) -> None:
        """Send a note soon."""
        self._box.note(self._wire, self._kind, alert)

    def listen(self, seconds: float, *, for_answers: bool = False) -> None:  # noqa: ARG002 - the lines stay until the queue is closed
        """Keep the lines open on which this process hears the others."""
        if self._wire.hears:
            self._box.listen(self._wire, self._kind, for_answers=for_answers)

    def close(self) -> None:
        """Leave the mailbox."""
        self._box.leave(self._wire, self._kind, self._on_alert)

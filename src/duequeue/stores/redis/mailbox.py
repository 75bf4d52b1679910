"""Wake-ups between processes, with one connection that hears them and one that sends them.

A process that looks and finds nothing enters its channel among the listeners of the queue, in the
script of that look. An offer takes one channel out, in its own script, and publishes to it. So one
process is woken for one message, and it enters itself again when it finds nothing more. If nobody
waits there any more, or the last one leaves before it has looked, it wakes another process.
"""

import secrets
import threading
from collections import defaultdict
from queue import SimpleQueue
from time import monotonic

from duequeue.port.alerts import Alert, Answered, OnAlert
from duequeue.port.store import ANONYMOUS_SENDER
from duequeue.process.line import ANSWER_WITHIN
from duequeue.process.shared import Shared
from duequeue.stores.redis.commands import Script
from duequeue.stores.redis.keys import PREFIX
from duequeue.stores.redis.scripts import code
from duequeue.stores.redis.session import answer
from duequeue.stores.redis.shards import shards_of
from duequeue.stores.redis.waits import Waits
from duequeue.stores.redis_client.cluster import LOSSES
from duequeue.stores.redis_client.cluster_map import shared_map
from duequeue.stores.redis_client.nodes import Connection
from duequeue.stores.redis_client.servers import Server
from duequeue.stores.redis_client.settings import RedisSettings, Way
from duequeue.stores.redis_client.wire import Line

# The due time in a note to a process that has to look now.
AT_ONCE = 0
# A note about a response begins with this, and not with a due time.
ANSWERED = "="


class SharedLines:
    """The lines of one process to one Redis, which its queues share."""

    def __init__(self) -> None:
        # All databases of a server share its channels. A fork has lines of its own.
        self._channel = f"{PREFIX}:wake:{secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._queues: defaultdict[str, list[OnAlert]] = defaultdict(list)
        self.waits = Waits()
        # The queues on which somebody has waited for a message.
        self._listening: set[str] = set()
        # The queues on which somebody has waited for a response.
        self._awaited: set[str] = set()
        self._unsent: dict[str, tuple[int, bool]] = {}
        self._something_to_send: SimpleQueue[None] = SimpleQueue()
        self._sending: Line | None = None
        # A node of a cluster notifies only the processes that are connected to it.
        self._hearing: dict[Server | None, Line] = {}
        self._heard: set[Line] = set()

    def add(self, kind: str, on_alert: OnAlert) -> None:
        """Connect a queue."""
        with self._lock:
            self._queues[kind].append(on_alert)

    def remove(self, settings: RedisSettings, kind: str, on_alert: OnAlert) -> None:
        """Disconnect a queue; after the last one, send what is left and close the lines."""
        with self._lock:
            self._queues[kind].remove(on_alert)
            if not self._queues[kind]:
                del self._queues[kind]
                if self.waits.forget(kind):
                    self._send_soon(settings, kind, AT_ONCE, takes_out=True)
                self._listening.discard(kind)
                self._awaited.discard(kind)
            if self._queues:
                return
            lines = [*self._hearing.values(), *([self._sending] if self._sending else [])]
            self._sending, self._hearing = None, {}
            self._heard.clear()
        for line in lines:
            line.closed.set()
        self._something_to_send.put(None)
        for line in lines:
            line.close()

    def channel_for(self, kind: str) -> str:
        """Return the channel that an unsuccessful look enters; "" if nobody ever waited here."""
        return self._channel if kind in self._listening else ""

    def enter_again(self, kind: str) -> None:
        """Have one of those who still wait here look, after a look took this process out."""
        if self.waits.any(kind):
            self._alert(kind, AT_ONCE)

    def answers_channel_for(self, kind: str) -> str:
        """Return the channel that a look for a response enters; "" if nobody waits here."""
        return self._channel if kind in self._awaited else ""

    def sender(self, kind: str) -> str:
        """Return the channel of this process if somebody waits here, who needs no wake-up."""
        is_awaited = kind in self._listening and self.waits.wake(kind)
        return self._channel if is_awaited else ANONYMOUS_SENDER

    def notify(
        self, settings: RedisSettings, kind: str, due_at: int, *, takes_out: bool = False
    ) -> None:
        """Have one process woken; if several due times wait to be sent, only the earliest is."""
        with self._lock:
            if self._queues:  # else the last one was closed while this call ran
                self._send_soon(settings, kind, due_at, takes_out=takes_out)

    def pass_on(self, settings: RedisSettings, kind: str) -> None:
        """Pass a wake-up on to another process, because nobody here has looked since."""
        self.notify(settings, kind, AT_ONCE, takes_out=True)

    def listen(self, settings: RedisSettings, kind: str) -> None:
        """Open the line that hears wake-ups, and have looks enter the channel."""
        with self._lock:
            if kind not in self._queues:  # the queue was closed while this poll ran
                return
            is_first = kind not in self._listening
            self._listening.add(kind)
            lines = self._lines_for(settings, kind)
            must_look = is_first and not self._heard.isdisjoint(lines)
        if must_look:  # the last look did not enter the channel
            self._alert(kind, None)

    def listen_for_answers(self, settings: RedisSettings, kind: str) -> None:
        """Open the line that hears wake-ups, and note that somebody waits for responses."""
        if kind in self._awaited:
            return
        with self._lock:
            if kind not in self._queues:
                return
            self._awaited.add(kind)
            must_look = not self._heard.isdisjoint(self._lines_for(settings, kind))
        if must_look:
            self._alert(kind, None)

    def _lines_for(self, settings: RedisSettings, kind: str) -> list[Line]:
        """Return the lines to the nodes that have a queue, and close those that nobody needs."""
        nodes = nodes_of(settings, kind)
        if nodes != {None}:
            awaited = self._listening | self._awaited
            needed = {node for each in awaited for node in nodes_of(settings, each)}
            for node in self._hearing.keys() - needed:
                self._hearing.pop(node).closed.set()
        for node in nodes - self._hearing.keys():
            self._hearing[node] = Line(settings, self._hear, node)
        return [self._hearing[node] for node in nodes]

    def _send_soon(
        self, settings: RedisSettings, kind: str, due_at: int, *, takes_out: bool
    ) -> None:
        self._note(kind, due_at, takes_out=takes_out)
        self._sending = self._sending or Line(settings, self._send)

    def _note(self, kind: str, due_at: int, *, takes_out: bool) -> None:
        if not self._unsent:
            self._something_to_send.put(None)
        before, was_out = self._unsent.get(kind, (due_at, False))
        self._unsent[kind] = (min(due_at, before), takes_out or was_out)

    def _send(self, line: Line, connection: Connection) -> None:
        line.works()
        while not line.closed.is_set() or self._unsent:
            self._something_to_send.get()
            with self._lock:
                to_send, self._unsent = self._unsent, {}
            try:
                for kind, (due_at, takes_out) in to_send.items():
                    _wake(line.settings, connection, kind, (due_at, int(takes_out)))
            except LOSSES:
                with self._lock:
                    for kind, (due_at, takes_out) in to_send.items():
                        self._note(kind, due_at, takes_out=takes_out)  # for the next connection
                raise

    def _hear(self, line: Line, connection: Connection) -> None:
        line.subscribe(connection, self._channel)
        with self._lock:
            if not line.closed.is_set():
                self._heard.add(line)
        try:
            for kind in self._listening | self._awaited:
                self._alert(kind, None)  # what came before this line was open was not heard
            for note in line.messages(connection):
                self._hear_one(line.settings, note)
        finally:
            with self._lock:
                self._heard.discard(line)

    def _hear_one(self, settings: RedisSettings, note: str) -> None:
        due_at, _, kind = note.partition(" ")
        if due_at == ANSWERED:
            length, _, text = kind.partition(" ")
            size = int(length)
            encoded = text.encode()  # the script counts bytes
            self._alert(encoded[:size].decode(), Answered(encoded[size:].decode()))
            return
        is_awaited = self.waits.wake(kind)
        self._alert(kind, int(due_at))
        if not is_awaited:  # then another process may take it
            self.pass_on(settings, kind)

    def _alert(self, kind: str, alert: Alert) -> None:
        """Alert one queue of the kind, because all of them in a process share a bell."""
        with self._lock:
            listeners = self._queues.get(kind)
            on_alert = listeners[0] if listeners else None
        if on_alert is not None:
            on_alert(alert)


def _wake(
    settings: RedisSettings, connection: Connection, kind: str, words: tuple[int, int]
) -> None:
    found = code("wake")
    keys = shards_of(kind, settings.shards)[0]  # a process that waits is entered in every shard
    command = Script(found, keys.of(found), (kind, *words))
    answer(connection, monotonic() + ANSWER_WITHIN, command)


def nodes_of(settings: RedisSettings, kind: str) -> set[Server | None]:
    """Return the nodes of a cluster that have a queue; None stands for the only server."""
    if settings.way is not Way.CLUSTER:
        return {None}
    known = shared_map(settings)
    shards = shards_of(kind, settings.shards)
    return {known.node_for(keys.named("listeners")) for keys in shards}


shared_lines = Shared(SharedLines)

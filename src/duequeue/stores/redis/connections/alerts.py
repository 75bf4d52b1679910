"""Wake-ups between processes, with one connection that hears them and one that sends them.

A process that looks and finds nothing enters its channel among the listeners of the queue, in the
script of that look. An offer takes one channel out, in its own script, and publishes to it. So one
process is woken for one message, and it enters itself again when it finds nothing more. If nobody
waits there any more, or the last one leaves before it has looked, it wakes another process.
"""

import secrets
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from time import monotonic
from types import TracebackType
from typing import TypeAlias
from weakref import WeakSet

from duequeue.instants import EARLIEST
from duequeue.port.alerts import Answered, OnAlert
from duequeue.port.store import ANONYMOUS_SENDER
from duequeue.process.line import ANSWER_WITHIN, Line
from duequeue.process.shared import Shared
from duequeue.stores.mailbox import Mailbox, MailboxAlerts, Notes, Wire
from duequeue.stores.redis.commands import Script
from duequeue.stores.redis.connections.session import answer
from duequeue.stores.redis.keys import PREFIX, shards_of
from duequeue.stores.redis.scripts import code
from duequeue.stores.redis_client.cluster import shared_map
from duequeue.stores.redis_client.nodes import Connection
from duequeue.stores.redis_client.settings import RedisSettings, Server, Way
from duequeue.stores.redis_client.wire import RedisWire, messages, subscribe

# Wakes another process.
PassOn: TypeAlias = Callable[[], None]

# The due time in a note to a process that has to look now.
AT_ONCE = 0
# In place of a due time in a note that takes another process out of the listeners, to look at once.
# It is before every due time, so it is what remains of several notes.
IN_OUR_PLACE = EARLIEST - 1
# A note about a response begins with this, and not with a due time.
ANSWERED = "="


class Waits:
    """The polls of one process that look or wait, by queue.

    A wake-up goes to one process. If the last poll there leaves before it has looked, for instance
    because it is cancelled, the wake-up has to go to another process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # A poll that is interrupted before it can leave has left when it is collected as garbage.
        self._polls: defaultdict[str, WeakSet[Wait]] = defaultdict(WeakSet)
        self._owed: set[str] = set()

    def block(self, kind: str, pass_on: PassOn) -> "Wait":
        """Return a block in which one poll looks and waits."""
        return Wait(self, kind, pass_on)

    def any(self, kind: str) -> bool:
        """Return whether somebody looks or waits here."""
        with self._lock:
            return bool(self._polls.get(kind))

    def wake(self, kind: str) -> bool:
        """Note a wake-up for this process, or its own offer; return False if nobody waits here."""
        with self._lock:
            if not self._polls.get(kind):
                return False
            self._owed.add(kind)
            return True

    def look(self, kind: str) -> bool:
        """Note that somebody is about to look; return whether a wake-up waited for that.

        If the look fails, `wake` notes it again.
        """
        with self._lock:
            return self._take_owed(kind)

    def forget(self, kind: str) -> bool:
        """Forget a queue that was closed; return whether a wake-up still waits for a look."""
        with self._lock:
            self._polls.pop(kind, None)
            return self._take_owed(kind)

    def add(self, kind: str, poll: "Wait") -> None:
        """Note a poll."""
        with self._lock:
            self._polls[kind].add(poll)

    def remove(self, kind: str, poll: "Wait") -> bool:
        """Forget a poll; if it was the last, return whether a wake-up still waits for a look."""
        with self._lock:
            polls = self._polls.get(kind, WeakSet())
            polls.discard(poll)
            return not polls and self._take_owed(kind)

    def _take_owed(self, kind: str) -> bool:
        is_owed = kind in self._owed
        self._owed.discard(kind)
        return is_owed


class Wait:
    """One poll, from the beginning to the end of a block."""

    def __init__(self, waits: Waits, kind: str, pass_on: PassOn) -> None:
        self._waits = waits
        self._kind = kind
        self._pass_on = pass_on

    def __enter__(self) -> None:
        """Count as a poll that waits."""
        self._waits.add(self._kind, self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave, whatever was found or raised."""
        if self._waits.remove(self._kind, self):
            self._pass_on()


class RedisMailbox(Mailbox[Connection]):
    """The queues of this process on one Redis; its name is its channel."""

    def __init__(self) -> None:
        # All databases of a server share its channels. A fork has a channel of its own.
        super().__init__(f"{PREFIX}:wake:{secrets.token_hex(8)}")
        self.waits = Waits()

    def channel_for(self, kind: str, *, for_answers: bool = False) -> str:
        """Return the channel that a vain look enters; "" if nobody ever waited here."""
        return self.name if (kind, for_answers) in self._awaited else ""

    def enter_again(self, kind: str) -> None:
        """Have one of those who still wait here look, after a look took this process out."""
        if self.waits.any(kind):
            self.alert([kind], AT_ONCE)

    def sender(self, kind: str) -> str:
        """Return the channel of this process if somebody waits here, who needs no wake-up."""
        is_awaited = (kind, False) in self._awaited and self.waits.wake(kind)
        return self.name if is_awaited else ANONYMOUS_SENDER

    def listen(
        self, wire: Wire[Connection], kind: str, *, for_answers: bool = False
    ) -> list[Line[Connection]]:
        """Open the lines; the last look did not enter the channel if this is the first call."""
        known = super().listen(wire, kind, for_answers=for_answers)
        if any(line.is_working for line in known):  # a new one has every queue look
            self.alert([kind])
        return known

    def _listeners(self, kind: str) -> list[OnAlert]:
        """Return one queue of a kind, because all of them in a process share a bell."""
        return super()._listeners(kind)[:1]

    def _forget(self, kind: str) -> Notes:
        super()._forget(kind)
        return {(kind, None): IN_OUR_PLACE} if self.waits.forget(kind) else {}


class ListenersWire(RedisWire):
    """Wakes one of the processes that have entered the listeners of a queue."""

    rest = 0.0

    def __init__(self, settings: RedisSettings, waits: Waits, node: Server | None = None) -> None:
        super().__init__(settings, node)
        self._waits = waits
        self.moves = settings.way is Way.CLUSTER

    def ends(self, kinds: Iterable[str]) -> dict[Hashable, Wire[Connection]]:
        """Return the nodes that have queues, as one notifies only those connected to it."""
        if not self.moves:
            return {None: self}
        settings = self.settings
        known = shared_map(settings)
        shards = [keys for kind in kinds for keys in shards_of(kind, settings.shards)]
        nodes = {known.node_for(keys.named("listeners")) for keys in shards}
        return {node: ListenersWire(settings, self._waits, node) for node in nodes}

    def send(
        self,
        box: Mailbox[Connection],  # noqa: ARG002 - the others do not ask who wakes them
        connection: Connection,
        notes: Notes,
    ) -> None:
        """Wake a process for each queue."""
        found = code("wake")
        for (kind, _), due_at in notes.items():
            # A process that waits is entered in every shard.
            keys = shards_of(kind, self.settings.shards)[0]
            words = (AT_ONCE, 1) if due_at == IN_OUR_PLACE else (due_at, 0)
            answer(
                connection,
                monotonic() + ANSWER_WITHIN,
                Script(found, keys.of(found), (kind, *words)),
            )

    def hear(
        self, box: Mailbox[Connection], line: Line[Connection], connection: Connection
    ) -> None:
        """Hear the channel of this process."""
        subscribe(line, connection, box.name)
        box.alert(box.awaited())  # what came before this line was open was not heard
        for text in messages(line, connection):
            due_at, _, rest = text.partition(" ")
            if due_at == ANSWERED:
                box.alert(*_answered(rest))
                continue
            is_awaited = self._waits.wake(rest)
            box.alert([rest], int(due_at))
            if not is_awaited:  # then another process may take it
                # The line that sends may be opened by this, and is for all nodes.
                box.note(ListenersWire(self.settings, self._waits), rest, IN_OUR_PLACE)


def _answered(text: str) -> tuple[list[str], Answered]:
    length, _, rest = text.partition(" ")
    encoded = rest.encode()  # the script counts bytes
    size = int(length)
    return [encoded[:size].decode()], Answered(encoded[size:].decode())


shared_mailboxes = Shared(RedisMailbox)


class RedisAlerts(MailboxAlerts):
    """Wakes the processes that wait on the same queue, one for each message."""

    def __init__(self, settings: RedisSettings, kind: str, on_alert: OnAlert) -> None:
        self._mailbox = shared_mailboxes.get(settings.place)
        wire = ListenersWire(settings, self._mailbox.waits)
        super().__init__(wire, kind, on_alert, self._mailbox)

    def sender(self) -> str:
        """Let every offer wake somebody in its own script."""
        return self._mailbox.sender(self._kind)

    def notify(self, alert: int | Answered) -> None:
        """Wake one process soon; the script that answers wakes the others itself."""
        if not isinstance(alert, Answered):
            super().notify(alert)

    def waiting(self) -> AbstractContextManager[None]:
        """Return a block in which a poll waits, so offers of this process wake no other one."""
        pass_on = partial(self._mailbox.note, self._wire, self._kind, IN_OUR_PLACE)
        return self._mailbox.waits.block(self._kind, pass_on)

"""Wake-ups between processes, with one connection that hears them and one that sends them.

A process that looks and finds nothing enters its channel among the listeners of the queue, in the
script of that look. An offer takes one channel out, in its own script, and publishes to it. So one
process is woken for one message, and it enters itself again when it finds nothing more. If nobody
waits there any more, or the last one leaves before it has looked, it wakes another process.
"""

import secrets
from collections.abc import Hashable, Iterable
from time import monotonic

from duequeue.instants import EARLIEST
from duequeue.port.alerts import Answered, OnAlert
from duequeue.port.store import ANONYMOUS_SENDER
from duequeue.process.line import ANSWER_WITHIN, Line
from duequeue.process.shared import Shared
from duequeue.stores.mailbox import Mailbox, Notes, Wire
from duequeue.stores.redis.commands import Script
from duequeue.stores.redis.keys import PREFIX
from duequeue.stores.redis.scripts import code
from duequeue.stores.redis.session import answer
from duequeue.stores.redis.shards import shards_of
from duequeue.stores.redis.waits import Waits
from duequeue.stores.redis_client.cluster_map import shared_map
from duequeue.stores.redis_client.nodes import Connection
from duequeue.stores.redis_client.servers import Server
from duequeue.stores.redis_client.settings import RedisSettings, Way
from duequeue.stores.redis_client.wire import RedisWire, messages, subscribe

# The due time in a note to a process that has to look now.
AT_ONCE = 0
# In place of a due time in a note that takes another process out of the listeners, to look at once.
# It is before every due time, so it is what remains of several notes.
IN_OUR_PLACE = EARLIEST - 1
# A note about a response begins with this, and not with a due time.
ANSWERED = "="


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

    def listen(self, wire: Wire[Connection], kind: str, *, for_answers: bool = False) -> None:
        """Open the lines; the last look did not enter the channel if this is the first call."""
        is_first = (kind, for_answers) not in self._awaited
        super().listen(wire, kind, for_answers=for_answers)
        if is_first and any(line.is_working for line in [*self._hearing.values()]):
            self.alert([kind])

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

    def ends(self, kinds: Iterable[str]) -> dict[Hashable, Wire[Connection]]:
        """Return the nodes that have queues, as one notifies only those connected to it."""
        settings = self.settings
        if settings.way is not Way.CLUSTER:
            return {None: self}
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
                box.note(self, rest, IN_OUR_PLACE)


def _answered(text: str) -> tuple[list[str], Answered]:
    length, _, rest = text.partition(" ")
    encoded = rest.encode()  # the script counts bytes
    size = int(length)
    return [encoded[:size].decode()], Answered(encoded[size:].decode())


shared_mailboxes = Shared(RedisMailbox)

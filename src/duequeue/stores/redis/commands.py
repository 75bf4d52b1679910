"""What an operation of this store asks of its session: scripts, and what they take."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from duequeue.port.store import Record, Steps
from duequeue.stores.redis.keys import QueueKeys
from duequeue.stores.redis.packing import tail_of
from duequeue.stores.redis.scripts import Code, code

Word: TypeAlias = str | bytes | int

T = TypeVar("T")

# The most that one script handles. For these few milliseconds, the server serves nobody else.
MOST_AT_ONCE = 1000
MOST_BYTES = 16 * 1024 * 1024


class Script(NamedTuple):
    """Run a script on keys of one slot; its reply is what the script returns."""

    code: Code
    keys: Sequence[bytes]
    arguments: Sequence[Word]

    @property
    def words(self) -> tuple[Any, ...]:
        """The command as it is sent.

        Numbers are text already, because an interrupt while hiredis converts them is fatal.
        """
        arguments = [b"%d" % each if type(each) is int else each for each in self.arguments]
        return ("EVALSHA", self.code.digest, b"%d" % len(self.keys), *self.keys, *arguments)

    @property
    def slot_key(self) -> bytes:
        """A key on the server that must run it."""
        return self.keys[0]


class Question(NamedTuple):
    """Send a command that changes nothing; without a key, to the server of the one before it."""

    words: tuple[Any, ...]


LOAD = ("SCRIPT", "LOAD")


class Caller:
    """Makes the commands of one kind of message."""

    def __init__(self, keys: QueueKeys) -> None:
        self.keys = keys
        self.kind = keys.kind

    def script(
        self,
        name: str,
        arguments: Sequence[Word] = (),
        now: int | None = None,
        own: Mapping[str, bytes] | None = None,
    ) -> Script:
        """Return a script with the keys that it takes; one that may settle messages needs `now`."""
        found = code(name)
        return Script(found, self.keys.of(found, now, own), arguments)

    def until_done(
        self, name: str, arguments: Sequence[Word], own: Mapping[str, bytes] | None = None
    ) -> Steps[Any]:
        """Run a script again while it has more to clear away before it can answer."""
        command = self.script(name, arguments, own=own)
        while (reply := (yield command)) is None:
            pass
        return reply


def cut(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Cut a sequence into what one script may handle."""
    if len(items) <= MOST_AT_ONCE:
        yield items
        return
    for first in range(0, len(items), MOST_AT_ONCE):
        yield items[first : first + MOST_AT_ONCE]


def cut_by_size(items: Sequence[T], sizes: Sequence[int]) -> Iterator[Sequence[T]]:
    """Cut a sequence where the sizes would be too large for one script."""
    first, total = 0, 0
    for position, size in enumerate(sizes):
        if position > first and total + size > MOST_BYTES:
            yield items[first:position]
            first, total = position, 0
        total += size
    yield items[first:]


def record_words(record: Record) -> tuple[Word, ...]:
    """Return a record as scripts take it."""
    return record.key, record.due_at, tail_of(record), "1" if record.replace else "0"

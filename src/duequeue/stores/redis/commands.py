"""What an operation of this store asks of its session."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from duequeue.stores.redis.scripts import Code

Word: TypeAlias = str | bytes | int


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

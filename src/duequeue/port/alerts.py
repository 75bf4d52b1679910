"""Wake-ups between processes: the port that stores implement.

A wake-up is a hint. If one is lost, the regular look every `poll_interval` finds the message.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple, TypeAlias


class Answered(NamedTuple):
    """The key of a message that another process has answered, buried or dropped."""

    key: str


# Called when another process has offered or answered something. The alert is the due time of a
# message, or the key of a response, or None if neither is known.
Alert: TypeAlias = int | Answered | None
OnAlert: TypeAlias = Callable[[Alert], None]


class Alerts:
    """Wakes the other processes that wait on the same queue, and is woken by them.

    These methods are enough for a store that no other process can reach; others override them.
    """

    # Opens a block in which a poll looks and waits; None if nobody need know. Never blocks.
    waiting: Callable[[], AbstractContextManager[None]] | None = None

    def sender(self) -> str | None:
        """Return the name under which an offer or answer notifies the others with its own commit.

        None means that it must not do so, and that `notify` follows instead.
        """
        return None

    def notify(self, alert: int | Answered) -> None:
        """Notify the others, soon, of a committed message or response. Never blocks."""

    def listen(self, seconds: float, *, for_answers: bool = False) -> None:
        """Receive the others' wake-ups for at least that long from now on. Never blocks.

        Who waits for answers wants to know of responses, and others of messages.
        """

    def close(self) -> None:
        """Send the notifications that are still due, and stop listening."""

"""Wake-ups between processes: the port that stores implement.

A wake-up is a hint. If one is lost, the regular look every `poll_interval` finds the message.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeAlias


class Answered(NamedTuple):
    """The key of a message that another process has answered, buried or dropped."""

    key: str


# Called when another process has offered or answered something. The alert is the due time of a
# message, or the key of a response, or None if neither is known.
Alert: TypeAlias = int | Answered | None
OnAlert: TypeAlias = Callable[[Alert], None]


class Alerts(Protocol):
    """Wakes the other processes that wait on the same queue, and is woken by them."""

    def sender(self) -> str | None:
        """Return the name under which an offer or answer notifies the others with its own commit.

        None means that it must not do so, and that `notify` or `notify_answered` follows instead.
        """

    def notify(self, due_at: int) -> None:
        """Notify the others, soon, of a message committed for `due_at`. Never blocks."""

    def notify_answered(self, keys: Sequence[str]) -> None:
        """Notify the others, soon, of the committed responses of keys. Never blocks."""

    @property
    def waiting(self) -> Callable[[], AbstractContextManager[None]] | None:
        """Opens a block in which a poll looks and waits; None if nobody need know. Never blocks."""

    def listen(self, seconds: float) -> None:
        """Receive the others' wake-ups for at least that long from now on. Never blocks."""

    def listen_for_answers(self, seconds: float) -> None:
        """Receive the others' news of responses for at least that long. Never blocks."""

    def close(self) -> None:
        """Send the notifications that are still due, and stop listening."""


class NoAlerts:
    """The alerts of a store that no other process can reach."""

    waiting = None  # nobody else offers

    def sender(self) -> None:
        """Return None."""

    def notify(self, due_at: int) -> None:
        """Ignore it, because nobody else waits."""

    def notify_answered(self, keys: Sequence[str]) -> None:
        """Ignore it, because nobody else waits."""

    def listen(self, seconds: float) -> None:
        """Ignore it, because nobody else offers."""

    def listen_for_answers(self, seconds: float) -> None:
        """Ignore it, because nobody else answers."""

    def close(self) -> None:
        """Do nothing."""

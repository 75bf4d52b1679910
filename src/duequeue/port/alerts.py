"""Wake-ups between processes: the port that stores implement.

A wake-up is a hint. If one is lost, the regular look every `poll_interval` finds the message.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

# Called when another process has offered something; the due time is None if it is not known.
OnAlert: TypeAlias = Callable[[int | None], None]


class Alerts(Protocol):
    """Wakes the other processes that wait on the same queue, and is woken by them."""

    def sender(self) -> str | None:
        """Return the name under which an offer notifies the others with its own commit.

        None means that the offer must not do so, and calls `notify` after its commit instead.
        """

    def notify(self, due_at: int) -> None:
        """Notify the others, soon, of a message committed for `due_at`. Never blocks."""

    def listen(self, seconds: float) -> None:
        """Receive the others' wake-ups for at least that long from now on. Never blocks."""

    def close(self) -> None:
        """Send the notifications that are still due, and stop listening."""


class NoAlerts:
    """The alerts of a store that no other process can reach."""

    def sender(self) -> None:
        """Return None."""

    def notify(self, due_at: int) -> None:
        """Ignore it, because nobody else waits."""

    def listen(self, seconds: float) -> None:
        """Ignore it, because nobody else offers."""

    def close(self) -> None:
        """Do nothing."""

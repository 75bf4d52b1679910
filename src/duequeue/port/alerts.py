"""Wake-ups between processes: the port that stores implement.

A wake-up is a hint. When one is lost, the regular look every `poll_interval` finds the message.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

# Told when another process has offered something; the due time is None when it is not known.
OnAlert: TypeAlias = Callable[[int | None], None]


class Alerts(Protocol):
    """One queue's line to the other processes on its database."""

    def sender(self) -> str | None:
        """Return in whose name an offer may tell the others itself; None to `tell` afterwards."""

    def tell(self, due_at: int) -> None:
        """Let the others know, soon, of a message committed for `due_at`. Never blocks."""

    def listen(self, seconds: float) -> None:
        """Hear the others from now on, for at least that long. Never blocks."""

    def close(self) -> None:
        """Tell what is left to tell, and hang up."""


class NoAlerts:
    """For stores that no other process can reach."""

    def sender(self) -> None:
        """Return none."""

    def tell(self, due_at: int) -> None:
        """Tell nobody."""

    def listen(self, seconds: float) -> None:
        """Hear nothing."""

    def close(self) -> None:
        """Do nothing."""

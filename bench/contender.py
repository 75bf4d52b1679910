"""What every contender can do; each is one small file in `contenders`."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

PAYLOAD = "x" * 150


class Contender(Protocol):
    """A way to consume messages from PostgreSQL."""

    name: str

    def prepare(self, url: str) -> None:
        """Create the tables."""

    def load(self, url: str, messages: int) -> None:
        """Put in that many messages, due now."""

    def drain(self, url: str, messages: int) -> float:
        """Handle them all with a handler that does nothing; return the seconds it took."""

    def producer(self, url: str) -> AbstractContextManager[Callable[[str, int], object]]:
        """Open a producer: a function that offers one message, a key and a timestamp, due now."""

    def receive(self, url: str, messages: int, ready: Callable[[], None]) -> list[int]:
        """Call `ready` once waiting; return the age of each message at its handler, in ns."""

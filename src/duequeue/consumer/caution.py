"""Which messages a consumer handles alone, because one of them may have killed its process.

When a process dies, nobody knows which of its messages was the cause. So a message that has lost a
lease, and may be buried if it loses another, is handled while the consumer holds nothing else. If
the process dies then, this message is the cause, and no other one is buried for it.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

from duequeue.leased import LeasedMessage
from duequeue.port.fencing import losses_of

P = TypeVar("P", bound=LeasedMessage)


class Caution(Generic[P]):
    """Decides how many messages a consumer may hold, and which of those fetched it gives back.

    While `alone`, it fetches single messages, and only when it holds nothing.
    """

    def __init__(self, max_attempts: int | None = None, concurrency: int = 1) -> None:
        self._max_attempts = max_attempts
        self._concurrency = concurrency
        self.always = max_attempts == 1  # then nothing is fetched ahead
        self.alone = False

    @property
    def limits(self) -> bool:
        """Whether the number of messages in hand is limited now."""
        return self.alone or self.always

    def room(self, in_hand: int) -> int:
        """Return how many messages to fetch at most."""
        return max(0, (1 if self.alone else self._concurrency) - in_hand)

    def sort(self, fetched: Sequence[P]) -> tuple[list[P], list[P]]:
        """Return the messages to handle now, and those to give back."""
        suspects = [each for each in fetched if each.attempt > 1 and self._is_suspect(each)]
        was_alone, self.alone = self.alone, bool(suspects)
        others = [each for each in fetched if each not in suspects] if suspects else list(fetched)
        return (suspects, others) if was_alone else (others, suspects)

    def _is_suspect(self, message: P) -> bool:
        losses = losses_of(message.lease.token)
        could_be_last = self._max_attempts is not None and message.attempt >= self._max_attempts
        return losses > 1 or (losses == 1 and could_be_last)

"""Which messages a consumer handles alone, because one of them may have killed its process.

When a process dies, nobody knows which of its messages was the cause. So a message that has lost a
lease, and may be buried if it loses another, is handled while no consumer of this process holds
anything else. If the process dies then, this message is the cause, whatever other queues the
process serves, and no other one is buried for it.
"""

import os
import threading
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar
from weakref import WeakSet

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


class Restful(Protocol):
    """What is known of the work of another consumer."""

    held_up: bool

    @property
    def at_rest(self) -> bool: ...


class Neighbour(Protocol):
    """The handover of a consumer."""

    @property
    def workload(self) -> Restful: ...
    def look_again(self) -> None: ...


class Solitude:
    """At most one consumer has it; the others begin nothing until it leaves."""

    def __init__(self) -> None:
        self._begin()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        # A fork has none of the threads that consume.
        self._lock = threading.Lock()
        self._neighbours: WeakSet[Neighbour] = WeakSet()
        self._owner: Neighbour | None = None

    def join(self, consumer: Neighbour) -> None:
        """Let a consumer respect the solitude of others from now on."""
        with self._lock:
            self._neighbours.add(consumer)
            consumer.workload.held_up = self._owner is not None

    def enter(self, consumer: Neighbour) -> bool:
        """Hold the others up, and return whether none of them handles anything any more."""
        with self._lock:
            if self._owner is None:
                self._owner = consumer
            others = [each for each in self._neighbours if each is not consumer]
            if self._owner is not consumer:
                return False
            for each in others:
                each.workload.held_up = True
        return all(each.workload.at_rest for each in others)

    def leave(self, consumer: Neighbour) -> bool:
        """Let the others go on, and return whether there are any."""
        with self._lock:
            if self._owner is not consumer:
                return False
            self._owner = None
            others = [each for each in self._neighbours if each is not consumer]
            for each in others:
                each.workload.held_up = False
        for each in others:
            each.look_again()
        return bool(others)


solitude = Solitude()

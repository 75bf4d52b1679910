"""Lets one consumer of this process handle a message while no other one handles any.

If the process dies then, it is known which message was the cause, whatever other queues it serves.
"""

import os
import threading
from typing import Protocol
from weakref import WeakSet


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

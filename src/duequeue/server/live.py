"""The requests that wait for messages, which a stopping server wakes with an empty answer.

A server stops in two steps. While it drains, it answers everything, but says that it is not ready,
and ends each connection with its next answer. Once it closes, nobody may wait any more.
"""

import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from duequeue.server.limits import Limits
from duequeue.server.problems import Problem
from duequeue.server.tokens import Grant


class Stoppable(Protocol):
    """Something that can be made to stop waiting."""

    def stop(self) -> None:
        """Stop waiting."""


class Live:
    """Who waits, and whether the server is about to stop."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiters: set[Any] = set()
        self._by_token: Counter[str] = Counter()
        self.draining = False
        self.closing = False

    @property
    def waiters(self) -> int:
        """How many requests wait now."""
        return len(self._waiters)

    def drain(self) -> None:
        """Wake everybody who waits, so that they come again, if possible to another server."""
        self.draining = True
        for waiter in list(self._waiters):
            waiter.stop()

    def close(self) -> None:
        """Wake everybody who waits, and let nobody wait any more."""
        self.closing = True
        self.drain()

    @contextmanager
    def waiting(self, waiter: Stoppable, grant: Grant) -> Iterator[None]:
        """Count somebody who waits, or raise if too many do."""
        too_many = len(self._waiters) >= self._limits.waiters
        if too_many or self._by_token[grant.id] >= self._limits.waiters_per_token:
            seconds = 1 + secrets.randbelow(5)  # so that they do not all come again at once
            raise Problem(
                429,
                "too-many-waiters",
                "too many requests are already waiting, with this token or in total",
                headers={b"retry-after": b"%d" % seconds},
            )
        self._waiters.add(waiter)
        self._by_token[grant.id] += 1
        if self.closing:
            waiter.stop()
        try:
            yield
        finally:
            self._waiters.discard(waiter)
            self._by_token[grant.id] -= 1
            if not self._by_token[grant.id]:
                del self._by_token[grant.id]

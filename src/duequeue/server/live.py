"""The requests that wait for messages, which a stopping server wakes with an empty answer.

A server stops in two steps. While it drains, it answers everything, but says that it is not ready,
and ends each connection with its next answer. Once it closes, nobody may wait any more.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from duequeue.server.limits import Limits
from duequeue.server.problems import Problem
from duequeue.server.tokens import READ_AGAIN_SECONDS, Grant


class Stoppable(Protocol):
    """Something that can be made to stop waiting."""

    def stop(self) -> None:
        """Stop waiting."""


class Live:
    """Who waits, and whether the server is about to stop.

    Once a second it looks for waiting requests whose tokens are no longer valid, and wakes them.
    """

    def __init__(self, limits: Limits, is_valid: Callable[[Grant], bool]) -> None:
        self._limits = limits
        self._is_valid = is_valid
        self._waiters: dict[Stoppable, Grant] = {}
        self._next_look: asyncio.TimerHandle | None = None
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
        self._waiters[waiter] = grant
        if self._next_look is None:
            self._look_later()
        self._by_token[grant.id] += 1
        if self.closing:
            waiter.stop()
        try:
            yield
        finally:
            del self._waiters[waiter]
            if not self._waiters and self._next_look is not None:
                self._next_look.cancel()
                self._next_look = None
            self._by_token[grant.id] -= 1
            if not self._by_token[grant.id]:
                del self._by_token[grant.id]

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._next_look = loop.call_later(READ_AGAIN_SECONDS, self._look_at_tokens)

    def _look_at_tokens(self) -> None:
        grants = {grant.id: grant for grant in self._waiters.values()}
        refused = {name for name, grant in grants.items() if not self._is_valid(grant)}
        if refused:
            for waiter, grant in list(self._waiters.items()):
                if grant.id in refused:
                    waiter.stop()
        self._look_later()

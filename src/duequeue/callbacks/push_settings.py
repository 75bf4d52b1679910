"""How a process posts callbacks: where they may go, through which proxy, and how many at a time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from duequeue import defaults
from duequeue.callbacks.guard import Guard
from duequeue.callbacks.posting import Poster
from duequeue.callbacks.pushing import Push
from duequeue.callbacks.slots import Slots
from duequeue.errors import InvalidArgument
from duequeue.instants import span_to_millis
from duequeue.parts import QueueSettings


@dataclass(frozen=True)
class PushSettings:
    """The settings of a push process; `grace` is for calls that still run when it stops.

    Without a guard, its policy is `public` in a server with a file of tokens, else `metadata`.
    """

    guard: Guard | None = None
    proxy: str | None = field(default=None, repr=False)
    calls: int = defaults.CALLS
    grace: timedelta = defaults.GRACE

    def __post_init__(self) -> None:
        Slots(self.calls)
        if span_to_millis(self.grace, "grace") < 0:
            raise InvalidArgument("grace", f"must not be negative, but it is {self.grace}")

    @asynccontextmanager
    async def running(self, store: QueueSettings) -> AsyncIterator[Push]:
        """Push until the end of the block."""
        async with Poster(self.guard or Guard(), proxy=self.proxy) as poster:
            push = await Push.start(store, poster, self.calls)
            try:
                yield push
            finally:
                await push.close(self.grace.total_seconds())

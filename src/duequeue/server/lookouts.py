"""Which of the requests that wait for one queue wakes up for the next look at it."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TypeVar

from duequeue.drive.actions import Action, Flow, Listen, Pause
from duequeue.drive.stoppable import StoppableFlow
from duequeue.wakeups.next_look import NEVER

R = TypeVar("R")


class Lookouts:
    """The requests that wake up for the next look at a queue.

    One is enough, however many wait. The others sleep until the bell wakes them. It rings when the
    request that looks has found something or goes away.
    """

    def __init__(self) -> None:
        self._times: dict[object, int] = {}

    def suffice(self, looks_at: int) -> bool:
        """Return whether a request wakes up at an instant or earlier."""
        return any(at <= looks_at for at in self._times.values())

    @contextmanager
    def waking_at(self, looks_at: int) -> Iterator[None]:
        """Count a request that wakes up then."""
        who = object()
        self._times[who] = looks_at
        try:
            yield
        finally:
            del self._times[who]


class PollFlow(StoppableFlow):
    """Runs a poll of at most `seconds`, which leaves the next look to another poll if it can."""

    def __init__(
        self,
        perform: Callable[[Action], Awaitable[object]],
        lookouts: Lookouts,
        seconds: float,
    ) -> None:
        super().__init__(perform)
        self._lookouts = lookouts
        self._seconds = seconds
        self._ends_at = 0.0

    async def run(self, flow: Flow[R]) -> R:
        """Run the poll, whose time begins now."""
        self._ends_at = monotonic() + self._seconds
        return await super().run(flow)

    async def wait(self, action: Listen | Pause) -> object:
        """Sleep until the bell rings if another request wakes up for the next look."""
        if not isinstance(action, Listen):
            return await super().wait(action)
        if self._lookouts.suffice(action.looks_at):
            left = max(0.0, self._ends_at - monotonic())
            return await super().wait(action._replace(looks_at=NEVER, seconds=left))
        with self._lookouts.waking_at(action.looks_at):
            return await super().wait(action)

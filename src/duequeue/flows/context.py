"""What the flows of one queue have in common."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from duequeue.backoff import RetryPolicy
from duequeue.clock import Clock
from duequeue.codec import Codec
from duequeue.drive.actions import Flow, retrying
from duequeue.events.events import Events
from duequeue.flows.group_commit import Ferry
from duequeue.instants import to_millis
from duequeue.port.alerts import Alerts
from duequeue.port.store import ANONYMOUS_SENDER, Operation, Steps, Store
from duequeue.wakeups.bell import Bell
from duequeue.wakeups.lookout import Lookout

T = TypeVar("T")
R = TypeVar("R")


# Other processes are told of messages due within this time, or within our own poll interval if
# that is longer: theirs is not known here.
TOLD_AHEAD = 60_000


@dataclass(frozen=True)
class Context(Generic[T]):
    """One queue's store and settings; durations in milliseconds.

    In a caller's transaction there is no ferry, and no alerts: whoever commits it tells the others.
    """

    name: str
    store: Store
    codec: Codec[T]
    clock: Clock
    bell: Bell
    lookout: Lookout
    events: Events
    ferry: Ferry | None
    alerts: Alerts | None
    retry: RetryPolicy
    lease: int
    poll_interval: int
    max_attempts: int | None

    def now(self) -> int:
        """Return the present instant."""
        return to_millis(self.clock.now(), "clock.now()")

    def run(self, operation: Operation[R]) -> Flow[R]:
        """Run an operation of the store, tried again as the policy says."""
        return retrying(self.retry, operation)

    def run_at_once(
        self, operation: Callable[[int], Steps[R]], retry: RetryPolicy | None = None
    ) -> Flow[tuple[R, int]]:
        """Run an operation that begins something now; return its result, and when that was.

        It is given the instant of each try: what a lease lasts must not be spent on retries.
        """

        def one_try() -> Steps[tuple[R, int]]:
            now = self.now()
            return (yield from operation(now)), now

        return retrying(retry or self.retry, one_try)

    def sender(self, due_at: int, now: int) -> str | None:
        """Return in whose name an offer tells the other processes itself, if it does."""
        if self._is_far(due_at, now):
            return None
        return ANONYMOUS_SENDER if self.alerts is None else self.alerts.sender()

    def announce(self, due_at: int, now: int, *, told: bool = False) -> Flow[None]:
        """Tell the waiting, here and elsewhere, that a message was just stored for `due_at`."""
        self.notice(due_at)
        if told or self._is_far(due_at, now):
            return
        if self.alerts is None:
            yield from self.run(partial(self.store.notify, due_at))
        else:
            self.alerts.tell(due_at)

    def _is_far(self, due_at: int, now: int) -> bool:
        """Tell whether the others see it soon enough at their next regular look."""
        return due_at > now + max(self.poll_interval, TOLD_AHEAD)

    def notice(self, due_at: int) -> None:
        """Have the waiting of this process look in time for `due_at`."""
        self.store.announce(due_at)
        self.bell.ring(due_at)

    def close(self) -> None:
        """Wake those who wait, and hang up."""
        self.bell.ring_all()
        if self.alerts is not None:
            self.alerts.close()

    @property
    def is_borrowed(self) -> bool:
        """Whether everything runs inside a caller's transaction."""
        return self.alerts is None

    def borrowed(self) -> "Context[T]":
        """Return the context for a caller's transaction, in which nothing can be tried again."""
        return replace(
            self, store=self.store.borrowed(), ferry=None, alerts=None, retry=RetryPolicy.never()
        )

"""What the flows of one queue have in common."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any, Generic, TypeVar

from duequeue.clock import Clock
from duequeue.codec import Codec
from duequeue.drive.actions import Flow
from duequeue.drive.retrying import retrying
from duequeue.events.events import Events
from duequeue.flows.cleaning import Cleaning
from duequeue.flows.group_commit import GroupCommit
from duequeue.message import BurialNotice
from duequeue.port.alerts import Alerts, Answered
from duequeue.port.store import ANONYMOUS_SENDER, KEEP, LONGEST_CALL, Operation, Steps, Store
from duequeue.process.contact import StoreContact
from duequeue.retry_policy import RetryPolicy
from duequeue.wakeups.awaited import Awaited
from duequeue.wakeups.bell import Bell
from duequeue.wakeups.next_look import NextLook

T = TypeVar("T")
R = TypeVar("R")


# Notify other processes only of messages due within this time, or within our own poll_interval if
# that is longer, because we do not know theirs.
NOTIFY_AHEAD = 60_000


@dataclass(frozen=True)
class Context(Generic[T]):
    """One queue's store and settings; durations in milliseconds.

    A consumer extends its leases, so one that ends means that its process died. If it fetches
    ahead, the process may have died before anybody had the message in hand.

    Inside a caller's transaction there is no group commit, and there are no alerts, because only
    the caller's commit can notify others.
    """

    name: str
    store: Store
    codec: Codec[T]
    response_codec: Codec[Any]
    clock: Clock
    now: Callable[[], int]
    bell: Bell
    next_look: NextLook
    awaited: Awaited
    events: Events
    group_commit: GroupCommit | None
    alerts: Alerts | None
    contact: StoreContact
    retry: RetryPolicy
    lease: int
    consumer_lease: int
    poll_interval: int
    max_attempts: int | None
    on_buried: Callable[[BurialNotice[T]], None] | None = None
    cleaning: Cleaning | None = None
    keeps_history: bool = False
    keep: int = KEEP
    extends_leases: bool = False
    fetches_ahead: bool = False

    def run(self, operation: Operation[R]) -> Flow[R]:
        """Run an operation of the store, and try again as the policy says."""
        return retrying(self.retry, operation, contact=self.contact)

    def run_long(self, operation: Operation[R]) -> Flow[R]:
        """Run an operation that may touch every message, so it has a lot of time."""
        return retrying(self.retry, operation, try_seconds=LONGEST_CALL, contact=self.contact)

    def consume(self, operation: Operation[R], gives_up_at: float = inf) -> Flow[R]:
        """Run an operation that polls or settles, and so must not wait for offers."""
        return retrying(
            self.retry, operation, gives_up_at=gives_up_at, consumes=True, contact=self.contact
        )

    def consume_from_now(
        self, operation: Callable[[int], Steps[R]], try_seconds: float | None = None
    ) -> Flow[tuple[R, int]]:
        """Run an operation that moves leases or due times; return its result and its instant.

        It is given the instant of each try, because retries must not eat into a lease.
        """
        one_try = partial(self._one_try, operation)
        return retrying(
            self.retry, one_try, try_seconds=try_seconds, consumes=True, contact=self.contact
        )

    def _one_try(self, operation: Callable[[int], Steps[R]]) -> Steps[tuple[R, int]]:
        """Make one try of an operation that begins something now."""
        now = self.now()
        return (yield from operation(now)), now

    def is_soon(self, due_at: int, now: int) -> bool:
        """Return whether the next regular look of other processes may come too late for it."""
        return due_at <= now + max(self.poll_interval, NOTIFY_AHEAD)

    def sender(self) -> str | None:
        """Return the name under which an offer notifies other processes itself, if it does."""
        return ANONYMOUS_SENDER if self.alerts is None else self.alerts.sender()

    def announce(self, due_at: int, now: int) -> Flow[None]:
        """Wake those who wait, here and elsewhere, for a message just stored for `due_at`."""
        self.notice(due_at)
        if self.is_soon(due_at, now):
            yield from self.notify(due_at)

    def notify(self, due_at: int) -> Flow[None]:
        """Wake those who wait in other processes."""
        if self.alerts is None:
            yield from self.run(partial(self.store.notify, due_at))
        else:
            self.alerts.notify(due_at)

    def notice(self, due_at: int) -> None:
        """Make those who wait in this process look in time for `due_at`."""
        self.store.announce(due_at)
        self.bell.ring(due_at)

    def announce_answered(self, keys: Sequence[str], sender: str | None) -> None:
        """Wake those who wait for responses to messages with these keys.

        With a sender, the commit has already woken those in other processes.
        """
        if keys:
            self.awaited.ring(keys)
            if sender is None and self.alerts is not None:
                for key in keys:
                    self.alerts.notify(Answered(key))

    def close(self) -> None:
        """Wake those who wait, and stop listening to other processes."""
        self.bell.ring_all()
        self.awaited.ring_all()
        if self.alerts is not None:
            self.alerts.close()

    def for_consumer(self, lease: int | None, keep: int) -> "Context[T]":
        """Return the context of a consumer, which has its own lease and keeps responses."""
        return replace(self, lease=self.consumer_lease if lease is None else lease, keep=keep)

    @property
    def is_borrowed(self) -> bool:
        """Whether everything runs inside a caller's transaction."""
        return self.alerts is None

    def borrowed(self, store: Store) -> "Context[T]":
        """Return the context for a store in a caller's transaction, where nothing can be retried.

        What fails there says nothing about the queue's own connections to the store.
        """
        return replace(
            self,
            store=store,
            group_commit=None,
            alerts=None,
            contact=StoreContact(),
            retry=RetryPolicy.never(),
            cleaning=None,
        )

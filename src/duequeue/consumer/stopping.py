"""How a consumer stops: in which order its roles end, and what becomes of its messages."""

from time import monotonic
from typing import TypeVar

from duequeue.consumer import settling
from duequeue.consumer.roles import (
    CLEAN_UP_SECONDS,
    AwaitFeeder,
    AwaitHandlers,
    AwaitKeeper,
    CancelHandlers,
    ConsumerRole,
    EndHook,
    RoleFlow,
)
from duequeue.flows.settling import give_back
from duequeue.leased import LeasedMessage

T = TypeVar("T")
P = TypeVar("P", bound=LeasedMessage)


class Stopping(ConsumerRole[T, P]):
    """Ends the other roles; until the end of `CLEAN_UP_SECONDS`, all of them may try the store."""

    def run(self, grace_seconds: float) -> RoleFlow[None]:
        """Give back what waits, let handlers finish within the grace, and release the others."""
        grace_ends_at = monotonic() + grace_seconds
        gives_up_at = grace_ends_at + CLEAN_UP_SECONDS
        self.handover.workload.gives_up_at = gives_up_at
        self.context.bell.ring_all()  # the feeder may wait in a poll
        yield AwaitFeeder()  # its last poll would fetch again what is given back
        with self.handover as workload:
            unbegun = workload.take_waiting()
        yield from self.tried("give messages back", give_back(self.context, unbegun))
        yield AwaitHandlers(grace_ends_at - monotonic())
        with self.handover as workload:
            overdue = workload.give_up_running()
        yield CancelHandlers(overdue, min(CLEAN_UP_SECONDS, gives_up_at - monotonic()))
        yield AwaitKeeper()
        left = [each for each in overdue if each.settled_within or not each.settled]
        yield from self.tried("release messages", settling.abandon(self.context, left))
        yield EndHook(gives_up_at - monotonic())

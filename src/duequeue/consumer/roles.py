"""What a consumer's three roles do: the feeder fetches, the keeper settles, and a stop ends both.

Each role is a flow. It yields what it waits for, which a face performs with threads or tasks; a
`Pause` of theirs ends early when a stop begins or becomes hard.
"""

import logging
import math
from collections.abc import Callable, Generator
from contextlib import ExitStack
from datetime import timedelta
from time import monotonic
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from duequeue.clock import ManualClock
from duequeue.consumer import settling
from duequeue.consumer.handover import Handover
from duequeue.consumer.handover_async import AsyncHandover
from duequeue.drive.actions import Action, Flow, Pause, Run
from duequeue.errors import QueueClosed, StoreUnavailable
from duequeue.events.events import StoreFailed
from duequeue.flows import polling
from duequeue.flows.context import Context
from duequeue.leased import LeasedMessage

T = TypeVar("T")
R = TypeVar("R")
P = TypeVar("P", bound=LeasedMessage)  # type: ignore[type-arg] # any payload

# Verdicts are gathered for this long, so that one statement settles many.
GATHER_SECONDS = 0.002
PAUSE_AFTER_ERROR = 1.0
# How long a stop lets handlers run, unless its caller says otherwise.
GRACE = timedelta(seconds=30)
# How long after the grace a stop still tries to reach the store and lets cancelled handlers end.
CLEAN_UP_SECONDS = 5.0

logger = logging.getLogger("duequeue.consumer")


class AwaitRoom(NamedTuple):
    """Wait until there is room. The answer is how many messages to fetch, 0 once stopping."""


class AwaitUnsettled(NamedTuple):
    """Wait for a message to settle, or for some time. The answer is True for the last round."""

    seconds: float


class AwaitFeeder(NamedTuple):
    """Wait until the feeder has ended."""


class AwaitKeeper(NamedTuple):
    """Wait until the keeper has ended."""


class AwaitHandlers(NamedTuple):
    """Wait until no handler runs, time is up, or a hard stop is requested."""

    seconds: float


class CancelHandlers(NamedTuple):
    """Cancel the handlers of these messages, and wait some time for the workers to end.

    Threads cannot be cancelled, so there it does nothing.
    """

    messages: list[Any]
    seconds: float


RoleAction: TypeAlias = (
    Action | AwaitRoom | AwaitUnsettled | AwaitFeeder | AwaitKeeper | AwaitHandlers | CancelHandlers
)
Role: TypeAlias = Generator[RoleAction, Any, R]


class Stopping(BaseException):
    """Ends a poll because its consumer stops."""


class Roles(Generic[T, P]):
    """The three roles of one consumer, over the workload that they share."""

    def __init__(
        self,
        context: Context[T],
        wrap: polling.Wrap[T, P],
        handover: Handover[P] | AsyncHandover[P],
    ) -> None:
        self._context = context
        self._wrap = wrap
        self._handover = handover
        self._gives_up_at = math.inf

    # The feeder.

    def feed(self) -> Role[None]:
        """Fetch messages, one poll at a time, until the consumer stops or its queue is closed."""
        while (room := (yield AwaitRoom())) > 0:
            try:
                poll = polling.poll_many(self._context, self._wrap, room, None)
                fetched = yield from _relayed(poll, self._unless_stopping())
            except Stopping:
                return
            except QueueClosed:
                with self._handover as workload:
                    workload.end()
                return
            except Exception as error:  # noqa: BLE001 - a consumer outlives every error of its store
                yield from self._report("poll", error)
            else:
                with self._handover as workload:
                    workload.add(fetched, room)

    def _unless_stopping(self) -> Callable[[Action], Role[object]]:
        """Return the function that performs one poll's actions until the consumer stops.

        Between two operations the poll may hold messages that it still has to return, so it ends
        only where it begins to look or to wait.
        """
        looks = False

        def perform(action: Action) -> Role[object]:
            nonlocal looks
            looked, looks = looks, isinstance(action, Run)
            if self._handover.workload.stopping and not (looked and looks):
                raise Stopping
            return (yield action)

        return perform

    # The keeper.

    def keep(self) -> Role[None]:
        """Settle messages in batches and keep leases alive, until the last round."""
        clock, last_round = self._context.clock, False
        with ExitStack() as at_the_end:
            if isinstance(clock, ManualClock):
                at_the_end.callback(clock.subscribe(self._handover.clock_moved))
            while not last_round:
                last_round = yield AwaitUnsettled(self._context.lease / 3 / 1000)
                if not last_round:
                    yield Pause(GATHER_SECONDS)
                yield from self._settle()
                yield from self._extend()

    def _settle(self) -> Role[None]:
        with self._handover as workload:
            groups = settling.by_verdict(workload.take_done())
        for group in groups:
            flow = settling.settle(self._context, group)
            done = yield from self._tried("settle handled messages", flow)
            with self._handover as workload:
                workload.settled(group, done=done)

    def _extend(self) -> Role[None]:
        with self._handover as workload:
            held = workload.held()
        lost: list[P] = []
        yield from self._tried("extend leases", settling.keep(self._context, held, lost))
        if lost:
            with self._handover as workload:
                newly_lost = workload.lose(lost)
            yield CancelHandlers(newly_lost, 0)

    # The stop.

    def stop(self, grace_seconds: float) -> Role[None]:
        """Give back what waits, let handlers finish within the grace, and release the others."""
        grace_ends_at = monotonic() + grace_seconds
        self._gives_up_at = grace_ends_at + CLEAN_UP_SECONDS
        self._context.bell.ring_all()  # the feeder may wait in a poll
        yield AwaitFeeder()  # its last poll would fetch again what is given back
        with self._handover as workload:
            unbegun = workload.take_waiting()
        yield from self._tried("give messages back", settling.give_back(self._context, unbegun))
        yield AwaitHandlers(grace_ends_at - monotonic())
        with self._handover as workload:
            overdue = workload.give_up_running()
        yield CancelHandlers(overdue, min(CLEAN_UP_SECONDS, self._gives_up_at - monotonic()))
        yield AwaitKeeper()
        left = [message for message in overdue if not message.settled]
        yield from self._tried("release messages", settling.abandon(self._context, left))

    # What all three do when the store fails.

    def _tried(self, purpose: str, flow: Flow[None]) -> Role[bool]:
        """Run a flow and return whether it succeeded; an error is reported, not raised."""
        try:
            yield from _relayed(flow, self._in_time)
        except QueueClosed:
            return True  # a closed queue has nothing to try again
        except Exception as error:  # noqa: BLE001 - a consumer outlives every error of its store
            yield from self._report(purpose, error)
            return False
        return True

    def _in_time(self, action: Action) -> Role[object]:
        """Perform an action, but do not wait for another try that would come too late."""
        if not isinstance(action, Pause):
            return (yield action)
        yield self._pause(action.seconds)
        if self._handover.workload.hard or monotonic() >= self._gives_up_at:
            raise StoreUnavailable("the consumer stopped before the store answered")
        return None

    def _report(self, purpose: str, error: Exception) -> Role[None]:
        """Log an error, notify the listeners, and pause before anything is tried again."""
        logger.error("queue %r: could not %s", self._context.name, purpose, exc_info=error)
        self._context.events.emit(StoreFailed(self._context.name, error))
        yield self._pause(PAUSE_AFTER_ERROR)

    def _pause(self, seconds: float) -> Pause:
        return Pause(min(seconds, self._gives_up_at - monotonic()))


def _relayed(flow: Flow[R], perform: Callable[[Action], Role[object]]) -> Role[R]:
    """Run `flow` inside a role, which performs its actions in its own way."""
    try:
        action = next(flow)
        while True:
            try:
                reply = yield from perform(action)
            except BaseException as error:  # noqa: BLE001 - handed to the flow, which re-raises it
                action = flow.throw(error)
            else:
                action = flow.send(reply)
    except StopIteration as done:
        result: R = done.value
        return result

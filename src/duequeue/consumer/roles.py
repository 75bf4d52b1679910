"""What the roles of a consumer have in common: the actions that they yield, and failing stores.

A role is a flow. It yields what it waits for, which a face performs with threads or tasks. A
`Pause` of a role ends early when a stop begins or becomes hard.
"""

import logging
from collections.abc import Callable, Generator
from time import monotonic
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from duequeue.consumer.handover import Handover
from duequeue.consumer.handover_async import AsyncHandover
from duequeue.consumer.solitude import solitude
from duequeue.drive.actions import Action, Flow, Pause, Run
from duequeue.errors import QueueClosed, StoreError, StoreUnavailable
from duequeue.events.events import StoreFailed
from duequeue.flows.context import Context
from duequeue.leased import LeasedMessage
from duequeue.process.contact import LOG_EVERY_SECONDS, one_line

T = TypeVar("T")
R = TypeVar("R")
P = TypeVar("P", bound=LeasedMessage)

PAUSE_AFTER_ERROR = 1.0
# How long after its grace a stop still tries to reach the store and lets cancelled handlers end. No
# single try of a consumer takes longer, so a try that is under way cannot delay a stop further.
CLEAN_UP_SECONDS = 5.0
LEAST_SECONDS = 0.1

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


class StartHandlers(NamedTuple):
    """Start threads in place of those whose handlers run for too long."""

    number: int


class EndHook(NamedTuple):
    """Let the hook end after the burials so far, and wait for that no longer than this."""

    seconds: float


RoleAction: TypeAlias = (
    Action
    | AwaitRoom
    | AwaitUnsettled
    | AwaitFeeder
    | AwaitKeeper
    | AwaitHandlers
    | CancelHandlers
    | StartHandlers
    | EndHook
)
RoleFlow: TypeAlias = Generator[RoleAction, Any, R]


class ConsumerRole(Generic[T, P]):
    """A role of one consumer, over the workload that the roles share."""

    def __init__(self, context: Context[T], handover: Handover[P] | AsyncHandover[P]) -> None:
        self.context = context
        self.handover = handover
        self._logged: tuple[str, float] = ("", 0.0)

    def tried(self, purpose: str, flow: Flow[None]) -> RoleFlow[bool]:
        """Run a flow and return whether it succeeded; an error is reported, not raised."""
        try:
            yield from relayed(flow, self._in_time)
        except QueueClosed:
            return True  # a closed queue has nothing to try again
        except Exception as error:  # noqa: BLE001 - a consumer outlives every error of its store
            yield from self.report(purpose, error)
            return False
        return True

    def _in_time(self, action: Action) -> RoleFlow[object]:
        """Perform an action, but do not wait for an answer or another try that comes too late."""
        if isinstance(action, Run):
            return (yield self.shortened(action))
        if not isinstance(action, Pause):
            return (yield action)
        yield self._pause(action.seconds)
        if self.handover.workload.hard or monotonic() >= self.handover.workload.gives_up_at:
            raise StoreUnavailable("the consumer stopped before the store answered")
        return None

    def shortened(self, action: Run) -> Run:
        """Return the same try, which ends in time for a stop."""
        left = max(self.handover.workload.gives_up_at - monotonic(), LEAST_SECONDS)
        return action._replace(seconds=min(action.seconds, CLEAN_UP_SECONDS, left))

    def report(self, purpose: str, error: Exception) -> RoleFlow[None]:
        """Log an error, notify the listeners, and pause before anything is tried again."""
        self._log(purpose, error)
        self.context.events.emit(StoreFailed(self.context.name, error))
        yield self._pause(PAUSE_AFTER_ERROR)

    def _log(self, purpose: str, error: Exception) -> None:
        """Log an error of the store in one line, once a minute, and any other in full."""
        name = self.context.name
        if not isinstance(error, StoreError):
            logger.error("queue %r: could not %s", name, purpose, exc_info=error)
            return
        if isinstance(error, StoreUnavailable) and self.context.contact.is_lost:
            return  # the outage is logged already
        words, now = f"could not {purpose}, and will try again: {one_line(error)}", monotonic()
        before, at = self._logged
        if words != before or now - at >= LOG_EVERY_SECONDS:
            self._logged = (words, now)
            logger.error("queue %r: %s", name, words)

    def _pause(self, seconds: float) -> Pause:
        """Return a pause before the store is tried again, in which other consumers may go on."""
        with self.handover as workload:
            workload.store_fails = True
            may_leave = not workload.busy
        if may_leave:
            solitude.leave(self.handover)
        return Pause(min(seconds, self.handover.workload.gives_up_at - monotonic()))


def relayed(flow: Flow[R], perform: Callable[[Action], RoleFlow[object]]) -> RoleFlow[R]:
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

"""The feeder of a consumer fetches messages ahead of the handlers."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from duequeue.consumer.handover import Handover
from duequeue.consumer.handover_async import AsyncHandover
from duequeue.consumer.roles import AwaitRoom, ConsumerRole, RoleFlow, relayed
from duequeue.consumer.solitude import solitude
from duequeue.drive.actions import Action, Flow, Pause, Run
from duequeue.errors import QueueClosed
from duequeue.flows import polling
from duequeue.flows.context import Context
from duequeue.flows.settling import give_back
from duequeue.leased import LeasedMessage

T = TypeVar("T")
P = TypeVar("P", bound=LeasedMessage)

# How often a consumer that must be alone looks whether it is.
MOMENT = 0.01


class PollEnds(BaseException):
    """Ends a poll because its consumer stops, or must not wait for the store while it is alone."""


class Feeder(ConsumerRole[T, P]):
    """Polls when there is room, one poll at a time, however many handlers there are."""

    def __init__(
        self,
        context: Context[T],
        handover: Handover[P] | AsyncHandover[P],
        wrap: polling.Wrap[T, P],
    ) -> None:
        super().__init__(context, handover)
        self._alone = replace(context, fetches_ahead=False, cleaning=None)
        self._wrap = wrap

    def run(self) -> RoleFlow[None]:
        """Fetch messages, one poll at a time, until the consumer stops or its queue is closed."""
        solitude.join(self.handover)
        try:
            yield from self._feed()
        finally:
            workload = self.handover.workload
            # A suspect may still run while its consumer stops. Its end then lets the others go on.
            if workload.stopped or not (workload.stopping and workload.busy):
                solitude.leave(self.handover)

    def _feed(self) -> RoleFlow[None]:
        while (room := (yield AwaitRoom())) > 0:
            had_company = solitude.leave(self.handover)
            if self.handover.workload.caution.alone:
                if had_company:  # between two suspects, the others go on for a moment
                    yield Pause(MOMENT)
                yield from self._be_alone()
            try:
                fetched = yield from relayed(self._poll(room), self._while_it_may())
            except PollEnds:
                if self.handover.workload.stopping:
                    return
                self._end_caution()
            except QueueClosed:
                with self.handover as workload:
                    workload.end()
                return
            except Exception as error:  # noqa: BLE001 - a consumer outlives every error of its store
                self._end_caution()
                yield from self.report("poll", error)
            else:
                with self.handover as workload:
                    returned = workload.add(fetched, room)
                giving_back = give_back(self.context, returned)
                yield from self.tried("give messages back", giving_back)

    def _be_alone(self) -> RoleFlow[None]:
        """Wait until no consumer of this process handles anything, or this one stops."""
        while not (solitude.enter(self.handover) or self.handover.workload.stopping):
            yield Pause(MOMENT)

    def _end_caution(self) -> None:
        """Poll as if there were no suspects, so that the others do not wait for the store.

        This poll finds the suspects again when the store answers.
        """
        solitude.leave(self.handover)
        with self.handover as workload:
            workload.caution.alone = False

    def _poll(self, room: int) -> Flow[list[P]]:
        if self.handover.workload.caution.alone:
            return polling.try_poll_many(self._alone, self._wrap, room)
        return polling.poll_many(self.context, self._wrap, room, None)

    def _while_it_may(self) -> Callable[[Action], RoleFlow[object]]:
        """Return the function that performs one poll's actions until the consumer stops.

        Between two operations the poll may hold messages that it still has to return, so it ends
        only where it begins to look or to wait. While alone, it ends instead of trying again.
        """
        looks = False

        def perform(action: Action) -> RoleFlow[object]:
            nonlocal looks
            looked, looks = looks, isinstance(action, Run)
            workload = self.handover.workload
            if workload.stopping and not (looked and looks):
                raise PollEnds
            if workload.caution.alone and isinstance(action, Pause):
                raise PollEnds
            return (yield self.shortened(action) if isinstance(action, Run) else action)

        return perform

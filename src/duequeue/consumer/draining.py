"""Handles all due messages by the rules of a consumer and then ends, for tests."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from duequeue.consumer.burial_hook import AsyncBurialHook, BurialHook
from duequeue.consumer.settling import as_answer, settle, verdict_on
from duequeue.consumer.workload import Done
from duequeue.drive.actions import Flow
from duequeue.events.events import ReportOutcome
from duequeue.flows import polling
from duequeue.flows.context import Context
from duequeue.leased import LeasedMessage
from duequeue.port.store import Claimed
from duequeue.verdict import Rules, as_raised, is_failure

T = TypeVar("T")
D = TypeVar("D", bound=LeasedMessage)


class Draining(Generic[T, D]):
    """Flows that lease and settle one message after the other, until none is due."""

    def __init__(
        self,
        context: Context[T],
        deliver: Callable[[Context[T], Claimed, T, int], D],
        rules: Rules,
        hook: BurialHook[T] | AsyncBurialHook[T] | None,
        limit: int,
    ) -> None:
        # As in a consumer, polls obey max_attempts too, and the hook is called for every burial.
        on_buried = None if hook is None else hook.add
        self._context = replace(context, max_attempts=rules.max_attempts, on_buried=on_buried)
        self._wrap = partial(deliver, self._context)
        self._rules = rules
        self._limit = limit
        self.handled = 0

    def next(self) -> Flow[D | None]:
        """Lease the next message, if one is due; raise if this has gone on for too long."""
        found: Sequence[D] = yield from polling.try_poll_many(self._context, self._wrap, 1)
        if not found:
            return None
        if self.handled == self._limit:
            raise RuntimeError(
                f"after {self._limit} messages, queue {self._context.name!r} still has messages "
                f"that are due, such as {found[0].key!r}: if the handler does not offer or release "
                "them again and again, pass a higher limit"
            )
        self.handled += 1
        if self._context.keeps_history:
            found[0].handler_began = self._context.now()
        return found[0]

    def settle(
        self, message: D, outcome: object, report: ReportOutcome
    ) -> Flow[BaseException | None]:
        """Settle a message by what its handler returned or raised; return the error, if any."""
        if outcome is not None:
            outcome = as_raised(outcome)
        if self._rules.respond:
            try:
                outcome = as_answer(self._context, message, outcome)
            except Exception as error:  # noqa: BLE001 - it counts as the handler's own
                outcome = error
        verdict = verdict_on(self._context, message, outcome, self._rules)
        report(outcome, verdict)
        if verdict is not None:
            yield from settle(self._context, [Done(message, verdict)])
        return outcome if is_failure(outcome) else None

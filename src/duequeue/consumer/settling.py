"""How a consumer settles messages and extends leases, many at a time."""

import logging
import traceback
from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar

from duequeue.consumer.workload import Done
from duequeue.drive.actions import Flow
from duequeue.errors import DeliveryLost
from duequeue.events.events import Handled, LeaseLost
from duequeue.flows.context import Context
from duequeue.flows.emitting import emit_buried, emit_lost
from duequeue.flows.responding import encoded_response
from duequeue.flows.settling import ToSettle, burial_of, settle_many
from duequeue.instants import MILLISECOND, words_for
from duequeue.leased import LeasedMessage
from duequeue.port.store import Answer
from duequeue.process.contact import one_line
from duequeue.verdict import (
    Acked,
    Bury,
    Parked,
    Released,
    Retry,
    Rules,
    Verdict,
    judge,
)

T = TypeVar("T")
P = TypeVar("P", bound=LeasedMessage)

logger = logging.getLogger("duequeue.consumer")


def verdict_on(
    context: Context[T], message: LeasedMessage[T], outcome: object, rules: Rules
) -> Verdict | None:
    """Judge what a handler returned or raised; None if there is nothing to settle."""
    if message.lost:
        return None
    if message.handler_began is not None:
        message.handler_ended(context.now())
    if isinstance(outcome, DeliveryLost):
        _lose(context, message, outcome)
        return None
    if message.settled and not _may_be_unsettled(context, message, outcome):
        return None
    verdict = _judged(context, message, outcome, rules)
    if isinstance(outcome, BaseException) and not isinstance(verdict, Acked):
        _log_failure(context, message, outcome, verdict, rules)
    return verdict


def _lose(context: Context[T], message: LeasedMessage[T], error: DeliveryLost) -> None:
    """Believe a handler that its message was taken away."""
    message.lost = True
    said = one_line(error)
    because = f", says its handler: {said}" if said else ", says its handler"
    logger.warning("queue %r: lost the lease of %r%s", context.name, message.key, because)
    context.events.emit(LeaseLost(context.name, message.key))


def _may_be_unsettled(context: Context[T], message: LeasedMessage[T], outcome: object) -> bool:
    """Return whether an exception may have undone, or prevented, what a handler settled itself.

    Its transaction may have been rolled back, or its call to settle the message may have failed.
    """
    if not isinstance(outcome, BaseException):
        return False
    return message.settled_within or context.is_borrowed or message.in_doubt


def _judged(
    context: Context[T], message: LeasedMessage[T], outcome: object, rules: Rules
) -> Verdict:
    try:
        return judge(outcome, message.attempt, rules)
    except Exception:  # the user's own backoff failed, which must not keep the message leased
        words = "queue %r: the backoff failed for %r, which is due again at once"
        logger.exception(words, context.name, message.key)
        return Released(timedelta(0))


def _log_failure(
    context: Context[T],
    message: LeasedMessage[T],
    error: BaseException,
    verdict: Released | Parked,
    rules: Rules,
) -> None:
    """Log what a handler raised and what becomes of its message.

    `Retry` and `Bury` are decisions of the handler, so they are not logged, unless a message is
    buried because there were too many of them.
    """
    decided = isinstance(error, Retry | Bury)
    if isinstance(error, Bury) or (decided and not isinstance(verdict, Parked)):
        return
    most = "" if rules.max_attempts is None else f" of {rules.max_attempts}"
    if isinstance(verdict, Parked):
        rule = verdict.reason.partition(":")[0]
        by_rule = rule in {"bury_on", "retry_on"}
        why = f"because of {rule}" if by_rule else f"after {_attempts(message.attempt)}"
        level, then = logging.ERROR, f"is buried {why}"
    else:
        level, then = logging.WARNING, f"is retried in {words_for(verdict.delay)}"
    if message.settled:
        then += ", unless its handler has settled it"
    words = "queue %r: %r failed (attempt %d%s) and %s: %s"
    raised = "".join(traceback.format_exception_only(error)).strip()
    shown = " ".join(raised.split())
    arguments = (context.name, message.key, message.attempt, most, then, shown)
    logger.log(level, words, *arguments, exc_info=None if decided else error)


def _attempts(number: int) -> str:
    return "1 attempt" if number == 1 else f"{number} attempts"


def verdict_on_late(context: Context[T], message: LeasedMessage[T], rules: Rules) -> Verdict | None:
    """Judge a handler that has run into the timeout and still runs."""
    error = late_error(rules)
    verdict = verdict_on(context, message, error, rules)
    if context.events.listeners and rules.timeout is not None:
        about = (message.key, message.attempt, rules.timeout, verdict, error)
        context.events.emit(Handled(context.name, *about))
    return verdict


def late_error(rules: Rules) -> TimeoutError:
    """Return the error of a handler that has run into the timeout."""
    limit = "" if rules.timeout is None else f" of {words_for(rules.timeout)}"
    return TimeoutError(f"the handler did not end within its timeout{limit}")


def as_answer(context: Context[T], message: LeasedMessage[T], outcome: object) -> object:
    """Encode what a handler returned as the response; raise if that is impossible.

    An exception stays as it is, and a result does not count if the handler settled the message.
    """
    if message.settled or isinstance(outcome, BaseException):
        return outcome
    return Acked(encoded_response(context, message.key, outcome))


def by_verdict(done: Sequence[Done[P]]) -> list[list[Done[P]]]:
    """Group messages by the kind of their verdict, so that one kind may fail without the others."""
    groups: dict[type, list[Done[P]]] = {}
    for each in done:
        groups.setdefault(type(each.verdict), []).append(each)
    return list(groups.values())


def settle(context: Context[T], done: Sequence[Done[P]]) -> Flow[None]:
    """Carry out verdicts, with one statement for each kind."""
    now = context.now()
    asked = ToSettle()
    for message, verdict in done:
        match verdict:
            case Acked(bytes() as response):
                asked.answers.append(Answer(message.lease, response, now + context.keep))
            case Acked():
                asked.acks.append(message.lease)
            case Released(delay):
                asked.releases.append((message.lease, delay // MILLISECOND))
            case Parked(reason):
                burial = burial_of(context, message.lease, message.attempt, reason)
                asked.burials.append(burial)
    held = yield from settle_many(context, asked)
    if asked.burials or context.events.listeners:
        won = {lease.id for lease in held}
        messages = [message for message, _ in done]
        emit_buried(context, messages, asked.burials, won)
        emit_lost(context, (message for message in messages if not message.settled), won)


def abandon(context: Context[T], messages: Sequence[P]) -> Flow[None]:
    """Release messages whose handlers did not end in time; their attempts count."""
    return settle(context, [Done(message, Released(timedelta(0))) for message in messages])

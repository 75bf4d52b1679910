"""How one offer reaches the store: alone, or with those that overlap."""

from functools import partial
from time import monotonic
from typing import TypeVar

from duequeue.backoff import RetryPolicy
from duequeue.drive.actions import Apart, Flow, Listen, retrying
from duequeue.errors import StoreError
from duequeue.flows.context import Context
from duequeue.flows.group_commit import PATIENCE, Ferry, Passenger
from duequeue.message import OfferOutcome
from duequeue.port.store import Record

T = TypeVar("T")

# What is larger makes its own crossing, and nobody wait for it.
MOST_BYTES = 64 * 1024


def cross(context: Context[T], record: Record) -> Flow[OfferOutcome]:
    """Offer one record, together with those that wait if somebody else's offer is under way."""
    ferry = context.ferry
    if ferry is None or len(record.payload) > MOST_BYTES:
        return (yield from _alone(context, record))
    passenger = ferry.wait(record)
    try:
        while passenger.waits:
            heard = passenger.bell.rings
            if aboard := ferry.cast_off(passenger, monotonic()):
                yield from _take_across(context, ferry, aboard)
            elif passenger.waits:
                yield Listen(passenger.bell, heard, 0, PATIENCE)
    except BaseException:
        ferry.leave(passenger)
        raise
    if passenger.outcome is None:
        return (yield from _alone(context, record))
    return passenger.outcome


def carry(
    context: Context[T], records: list[Record], now: int, *, hurried: bool = False
) -> Flow[list[OfferOutcome]]:
    """Store records in one transaction, and tell the waiting of what is new.

    Hurried, it is tried once, and does not wait for rows that others hold.
    """
    sender = context.sender(min(record.due_at for record in records), now)
    offer = partial(context.store.offer, records, now, sender=sender, hurried=hurried)
    policy = RetryPolicy.never() if hurried else context.retry
    outcomes = yield from retrying(policy, offer)
    changed = [
        record.due_at
        for record, outcome in zip(records, outcomes, strict=True)
        if outcome is not OfferOutcome.IGNORED
    ]
    if changed:
        yield from context.announce(min(changed), now, told=sender is not None)
    return outcomes


def _alone(context: Context[T], record: Record) -> Flow[OfferOutcome]:
    outcomes = yield from carry(context, [record], context.now())
    return outcomes[0]


def _take_across(context: Context[T], ferry: Ferry, aboard: list[Passenger]) -> Flow[None]:
    leader, *followers = aboard
    if followers:
        leader.takes = []  # from here on the ferry lands by itself, with or without its leader
        yield Apart(_together(context, ferry, aboard))
        return
    outcomes: list[OfferOutcome] = []
    try:
        outcomes = yield from carry(context, [leader.record], context.now())
    finally:
        ferry.land(aboard, outcomes)


def _together(context: Context[T], ferry: Ferry, aboard: list[Passenger]) -> Flow[None]:
    records = [passenger.record for passenger in aboard]
    outcomes: list[OfferOutcome] = []
    try:
        outcomes = yield from carry(context, records, context.now(), hurried=True)
    except StoreError:
        pass  # one record must not be the end of the others: each tries again by itself
    finally:
        ferry.land(aboard, outcomes)

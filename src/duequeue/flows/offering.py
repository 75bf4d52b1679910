"""Offers, one or many."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import TypeVar

from duequeue.drive.actions import Flow
from duequeue.drive.retrying import retrying
from duequeue.errors import InvalidType
from duequeue.events.events import Offered
from duequeue.flows.arguments import checked_flag, expiry_millis
from duequeue.flows.chunking import chunks
from duequeue.flows.context import Context
from duequeue.flows.group_commit import share_commit
from duequeue.headers import encode_headers
from duequeue.instants import due_millis
from duequeue.message import Message, OfferOutcome, checked_key, checked_payload
from duequeue.port.store import Record
from duequeue.retry_policy import RetryPolicy

T = TypeVar("T")

# Larger payloads are offered alone, so that no one waits for them.
LARGEST_SHARED = 64 * 1024

_due_at = attrgetter("due_at")


def offer(
    context: Context[T],
    key: str,
    payload: T,
    due: datetime | timedelta | None,
    *,
    replace: bool,
    headers: Mapping[str, str] | None,
    expires: datetime | timedelta | None = None,
) -> Flow[OfferOutcome]:
    """Offer one message."""
    now = context.now()
    record = _record(context, key, payload, due, replace, headers, expires, now)
    return _offer_one(context, record)


def offer_batch(context: Context[T], messages: Iterable[Message[T]]) -> Flow[list[OfferOutcome]]:
    """Offer in chunks; a list is checked whole first, an iterator chunk by chunk.

    A delay counts from the call for a list, and from when its message is taken for an iterator,
    which may take its time.
    """
    if not isinstance(messages, Iterable):
        raise InvalidType("messages", f"must be messages, not of type {type(messages).__name__}")
    records: Iterable[Record]
    if isinstance(messages, Sequence):
        now = context.now()
        records = [_record_of(context, message, now) for message in messages]
    else:
        records = (_record_of(context, message, context.now()) for message in messages)
    return _offer_chunks(context, records)


def store_records(
    context: Context[T], records: list[Record], *, hurried: bool = False
) -> Flow[list[OfferOutcome]]:
    """Store records in one transaction, and wake those who wait for what is new.

    If hurried, try once, and do not wait for rows that others hold.
    """
    now = context.now()
    is_soon = context.is_soon(min(records, key=_due_at).due_at, now)
    sender = context.sender() if is_soon else None
    store = partial(context.store.offer, records, now, sender=sender, hurried=hurried)
    policy = RetryPolicy.never() if hurried else context.retry
    outcomes = yield from retrying(policy, store, contact=context.contact)
    changed = [
        record.due_at
        for record, outcome in zip(records, outcomes, strict=True)
        if outcome is not OfferOutcome.IGNORED
    ]
    if changed:
        context.notice(min(changed))
        if sender is None and context.is_soon(min(changed), now):
            yield from context.notify(min(changed))
    return outcomes


def _offer_one(context: Context[T], record: Record) -> Flow[OfferOutcome]:
    if not context.events.listeners:
        return (yield from _store_one(context, record))
    with context.events.offering([record]) as (stamped,):
        outcome = yield from _store_one(context, stamped)
        _emit_offered(context, [outcome])
    return outcome


def _store_one(context: Context[T], record: Record) -> Flow[OfferOutcome]:
    """Store a record at once, or in one commit with others if another offer is under way."""
    group_commit = context.group_commit
    if group_commit is None or len(record.payload) > LARGEST_SHARED:
        (outcome,) = yield from store_records(context, [record])
    elif commit := group_commit.start_alone():
        try:
            (outcome,) = yield from store_records(context, [record])
        finally:
            group_commit.finish_alone(commit)
    else:
        outcome = yield from share_commit(group_commit, record, partial(store_records, context))
    return outcome


def _offer_chunks(context: Context[T], records: Iterable[Record]) -> Flow[list[OfferOutcome]]:
    outcomes: list[OfferOutcome] = []
    for chunk in chunks(records):
        outcomes += yield from _offer_chunk(context, chunk)
    return outcomes


def _offer_chunk(context: Context[T], records: list[Record]) -> Flow[list[OfferOutcome]]:
    if not context.events.listeners:
        return (yield from store_records(context, records))
    with context.events.offering(records) as stamped:
        outcomes = yield from store_records(context, stamped)
        _emit_offered(context, outcomes)
    return outcomes


def _emit_offered(context: Context[T], outcomes: list[OfferOutcome]) -> None:
    created = outcomes.count(OfferOutcome.CREATED)
    updated = outcomes.count(OfferOutcome.UPDATED)
    ignored = len(outcomes) - created - updated
    context.events.emit(Offered(context.name, created, updated, ignored))


def _record_of(context: Context[T], message: Message[T], now: int) -> Record:
    if not isinstance(message, Message):
        raise InvalidType("messages", f"must be Message objects, not {type(message).__name__}")
    return _record(
        context,
        message.key,
        message.payload,
        message.due,
        message.replace,
        message.headers,
        message.expires,
        now,
    )


def _record(  # noqa: PLR0917 - the fields of a message, in their order
    context: Context[T],
    key: str,
    payload: T,
    due: datetime | timedelta | None,
    replace: bool,  # noqa: FBT001 - a field of a message
    headers: Mapping[str, str] | None,
    expires: datetime | timedelta | None,
    now: int,
) -> Record:
    key = checked_key(key)
    data = checked_payload(context.codec.encode(payload), key)
    due_at = due_millis(due, now)
    encoded = None if headers is None else encode_headers(headers)
    expires_at = None if expires is None else expiry_millis(expires, due_at, now)
    return Record(key, data, due_at, encoded, checked_flag(replace, "replace"), expires_at)

"""Offers, one or many."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from duequeue.actions import Flow
from duequeue.events import Offered
from duequeue.flows.arguments import due_millis
from duequeue.flows.context import Context
from duequeue.headers import encode_headers
from duequeue.message import Message, OfferOutcome, checked_key, checked_payload
from duequeue.store import Record

T = TypeVar("T")

CHUNK_MESSAGES = 1000
CHUNK_BYTES = 8 * 1024 * 1024


def offer(
    context: Context[T],
    key: str,
    payload: T,
    due: datetime | timedelta | None,
    *,
    replace: bool,
    headers: Mapping[str, str] | None,
) -> Flow[OfferOutcome]:
    """Offer one message."""
    now = context.now()
    message = Message(key, payload, due, replace, headers)
    return _offer_one(context, _record(context, message, now), now)


def offer_batch(context: Context[T], messages: Iterable[Message[T]]) -> Flow[list[OfferOutcome]]:
    """Offer in chunks; a list is checked whole first, an iterator chunk by chunk."""
    now = context.now()
    records: Iterable[Record] = (_record(context, message, now) for message in messages)
    if isinstance(messages, Sequence):
        records = list(records)
    return _offer_chunks(context, records, now)


def _offer_one(context: Context[T], record: Record, now: int) -> Flow[OfferOutcome]:
    outcomes = yield from _offer_chunk(context, [record], now)
    return outcomes[0]


def _offer_chunks(
    context: Context[T], records: Iterable[Record], now: int
) -> Flow[list[OfferOutcome]]:
    outcomes: list[OfferOutcome] = []
    for chunk in _chunks(records):
        outcomes += yield from _offer_chunk(context, chunk, now)
    return outcomes


def _offer_chunk(context: Context[T], records: list[Record], now: int) -> Flow[list[OfferOutcome]]:
    sender = context.sender(min(record.due_at for record in records), now)
    if context.events.listeners:
        outcomes = yield from _offer_watched(context, records, now, sender)
    else:
        outcomes = yield from context.run(partial(context.store.offer, records, now, sender))
    changed = [
        record.due_at
        for record, outcome in zip(records, outcomes, strict=True)
        if outcome is not OfferOutcome.IGNORED
    ]
    if changed:
        yield from context.announce(min(changed), now, told=sender is not None)
    return outcomes


def _offer_watched(
    context: Context[T], records: list[Record], now: int, sender: str | None
) -> Flow[list[OfferOutcome]]:
    with context.events.offering(records) as stamped:
        outcomes = yield from context.run(partial(context.store.offer, stamped, now, sender))
        created = outcomes.count(OfferOutcome.CREATED)
        updated = outcomes.count(OfferOutcome.UPDATED)
        ignored = len(outcomes) - created - updated
        context.events.emit(Offered(context.name, created, updated, ignored))
    return outcomes


def _record(context: Context[T], message: Message[T], now: int) -> Record:
    if not isinstance(message, Message):
        raise TypeError(f"messages must be Message objects, not {type(message).__name__}")
    key = checked_key(message.key)
    data = checked_payload(context.codec.encode(message.payload), key)
    headers = encode_headers(message.headers)
    return Record(key, data, due_millis(message.due, now), headers, bool(message.replace))


def _chunks(records: Iterable[Record]) -> Iterator[list[Record]]:
    chunk: list[Record] = []
    size = 0
    for record in records:
        if len(chunk) == CHUNK_MESSAGES or (chunk and size + len(record.payload) > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(record)
        size += len(record.payload)
    if chunk:
        yield chunk

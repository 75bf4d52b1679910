"""Offers, one or many."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from duequeue.drive.actions import Flow
from duequeue.events.events import Offered
from duequeue.flows.arguments import checked_flag, due_millis
from duequeue.flows.context import Context
from duequeue.flows.crossing import carry, cross
from duequeue.headers import encode_headers
from duequeue.message import Message, OfferOutcome, checked_key, checked_payload
from duequeue.port.store import Record

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
    return _offer_one(context, _record(context, message, now))


def offer_batch(context: Context[T], messages: Iterable[Message[T]]) -> Flow[list[OfferOutcome]]:
    """Offer in chunks; a list is checked whole first, an iterator chunk by chunk."""
    now = context.now()
    records: Iterable[Record] = (_record(context, message, now) for message in messages)
    if isinstance(messages, Sequence):
        records = list(records)
    return _offer_chunks(context, records, now)


def _offer_one(context: Context[T], record: Record) -> Flow[OfferOutcome]:
    if not context.events.listeners:
        return (yield from cross(context, record))
    with context.events.offering([record]) as (stamped,):
        outcome = yield from cross(context, stamped)
        _tell_offered(context, [outcome])
    return outcome


def _offer_chunks(
    context: Context[T], records: Iterable[Record], now: int
) -> Flow[list[OfferOutcome]]:
    outcomes: list[OfferOutcome] = []
    for chunk in _chunks(records):
        outcomes += yield from _offer_chunk(context, chunk, now)
    return outcomes


def _offer_chunk(context: Context[T], records: list[Record], now: int) -> Flow[list[OfferOutcome]]:
    if not context.events.listeners:
        return (yield from carry(context, records, now))
    with context.events.offering(records) as stamped:
        outcomes = yield from carry(context, stamped, now)
        _tell_offered(context, outcomes)
    return outcomes


def _tell_offered(context: Context[T], outcomes: list[OfferOutcome]) -> None:
    created = outcomes.count(OfferOutcome.CREATED)
    updated = outcomes.count(OfferOutcome.UPDATED)
    ignored = len(outcomes) - created - updated
    context.events.emit(Offered(context.name, created, updated, ignored))


def _record(context: Context[T], message: Message[T], now: int) -> Record:
    if not isinstance(message, Message):
        raise TypeError(f"messages must be Message objects, not {type(message).__name__}")
    key = checked_key(message.key)
    data = checked_payload(context.codec.encode(message.payload), key)
    headers = encode_headers(message.headers)
    replace = checked_flag(message.replace, "replace")
    return Record(key, data, due_millis(message.due, now), headers, replace)


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

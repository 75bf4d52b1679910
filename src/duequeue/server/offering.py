"""Offers: one message, a list, a stream of lines, or a body that is itself the payload."""

from collections.abc import AsyncIterator, Sequence

import msgspec

from duequeue.errors import InvalidArgument, InvalidType
from duequeue.flows.arguments import expiry_millis
from duequeue.headers import encode_headers
from duequeue.instants import due_millis
from duequeue.message import Message, OfferOutcome, checked_key, checked_payload
from duequeue.server import wire
from duequeue.server.departures import ClientGone
from duequeue.server.exchange import NDJSON, Exchange, read_flag
from duequeue.server.parameters import DELAY, DUE_AT, HOT_TYPES, KEY, QUEUE, TYPE
from duequeue.server.payloads import body_to_stored, to_stored
from duequeue.server.problems import (
    UNREADABLE,
    Problem,
    invalid,
    problem_of,
    too_large,
    undecodable,
)
from duequeue.server.queues import ServedQueue
from duequeue.server.routing import Parameter, Route
from duequeue.server.times import read_due, read_due_text, read_expiry
from duequeue.server.tokens import Scope
from duequeue.suggestions import advice

# How many messages of a stream are offered together.
CHUNK_MESSAGES = 1000
CHUNK_BYTES = 4 * 1024 * 1024

REPLACE = Parameter("replace", bool, "Whether to replace a message with the same key")
EXPIRES = Parameter("expires", str, "An instant or a time from now at which it is dropped")

_decode_line = msgspec.json.Decoder(wire.OfferedMessage).decode
_HEADER_PREFIX = b"duequeue-header-"
_OPTIONS = ("duequeue-due-at", "duequeue-delay", "duequeue-replace", "duequeue-expires")


async def post(exchange: Exchange) -> None:
    """Offer one message, a list of them, or a stream of lines."""
    content_type = exchange.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if content_type == NDJSON:
        await _offer_stream(exchange)
        return
    given: wire.OfferedMessage | list[wire.OfferedMessage]
    given = await exchange.decoded(wire.OfferedMessage | list[wire.OfferedMessage])
    queue = await exchange.queue(create=True)
    if isinstance(given, wire.OfferedMessage):
        outcome = await _offer_one(queue, _message(given, queue.type_name, ""))
        await exchange.answer(wire.Offered(outcome=outcome.value), form=exchange.answer_format)
        return
    most = exchange.service.limits.batch_messages
    if len(given) > most:
        raise invalid("messages", f"a list may have at most {most} messages; use NDJSON for more")
    messages = [_message(each, queue.type_name, f"[{place}].") for place, each in enumerate(given)]
    outcomes = await _offer_many(queue, messages, "[{}].")
    await exchange.answer(wire.Offered(outcomes=outcomes), form=exchange.answer_format)


async def put(exchange: Exchange) -> None:
    """Offer the body as the payload of a key."""
    _refuse_unknown_headers(exchange)
    body = await exchange.body()
    queue = await exchange.queue(create=True)
    message = Message(
        exchange.path["key"],
        body_to_stored(body, queue.type_name),
        read_due_text(_option(exchange, "due_at"), _option(exchange, "delay")),
        read_flag(_option(exchange, "replace"), "replace", otherwise=True),
        _message_headers(exchange),
        read_expiry(_option(exchange, "expires")),
    )
    outcome = await _offer_one(queue, message)
    await exchange.answer(wire.Offered(outcome=outcome.value), form=exchange.answer_format)


def _refuse_unknown_headers(exchange: Exchange) -> None:
    for each in exchange.headers:
        name = each.decode("latin-1")
        is_ours = name.startswith("duequeue-") and not each.startswith(_HEADER_PREFIX)
        if is_ours and name not in _OPTIONS:
            hint = advice(name, _OPTIONS)
            raise invalid(name[:100], f"{name[:100]!r} is not a header of this path; {hint}")


def _option(exchange: Exchange, name: str) -> str | None:
    """Return a parameter of the query, or the header that stands for it."""
    header = exchange.headers.get(b"duequeue-" + name.replace("_", "-").encode())
    return exchange.query.get(name, None if header is None else header.decode("latin-1"))


def _message_headers(exchange: Exchange) -> dict[str, str] | None:
    found = {
        name.removeprefix(_HEADER_PREFIX).decode("latin-1"): value.decode("latin-1")
        for name, value in exchange.headers.items()
        if name.startswith(_HEADER_PREFIX)
    }
    return found or None


def _message(given: wire.OfferedMessage, type_name: str, place: str) -> Message[bytes]:
    return Message(
        given.key,
        to_stored(given.payload, given.payload_b64, type_name, place),
        read_due(given.due_at, given.delay, place),
        given.replace,
        given.headers,
        read_expiry(given.expires, f"{place}expires"),
    )


async def _offer_one(queue: ServedQueue, message: Message[bytes]) -> OfferOutcome:
    return await queue.queue.offer(
        message.key,
        message.payload,
        message.due,
        replace=message.replace,
        headers=message.headers,
        expires=message.expires,
    )


async def _offer_many(
    queue: ServedQueue, messages: Sequence[Message[bytes]], place: str
) -> list[wire.Outcome]:
    try:
        outcomes = await queue.queue.offer_batch(messages)
    except (InvalidArgument, InvalidType) as error:
        raise _problem_in(messages, queue.context.now(), place) or error from None
    return [outcome.value for outcome in outcomes]


def _problem_in(messages: Sequence[Message[bytes]], now: int, place: str) -> Problem | None:
    """Return which message of a batch is wrong, which the library's error does not say."""
    for number, message in enumerate(messages):
        try:
            checked_payload(message.payload, checked_key(message.key))
            due_at = due_millis(message.due, now)
            encode_headers(message.headers)
            if message.expires is not None:
                expiry_millis(message.expires, due_at, now)
        except (InvalidArgument, InvalidType) as error:
            problem = problem_of(error)
            problem.argument = place.format(number) + (problem.argument or "")
            return problem
    return None


async def _offer_stream(exchange: Exchange) -> None:
    """Offer lines as they come, in chunks; a bad line ends the request, and the chunks before
    it stay offered."""
    queue = await exchange.queue(create=True)
    outcomes: list[wire.Outcome] = []
    messages: list[Message[bytes]] = []
    numbers: list[int] = []
    size = 0
    try:
        async for number, line in _lines(exchange):
            message = _line_message(line, queue.type_name, number)
            messages.append(message)
            numbers.append(number)
            size += len(message.payload)
            if len(messages) == CHUNK_MESSAGES or size >= CHUNK_BYTES:
                outcomes += await _offer_chunk(queue, messages, numbers)
                messages, numbers, size = [], [], 0
        if messages:
            outcomes += await _offer_chunk(queue, messages, numbers)
    except ClientGone:
        raise
    except Exception as error:  # noqa: BLE001 - whatever failed, the client hears how far it came
        problem = problem_of(error)
        problem.offered = len(outcomes)
        raise problem from (None if problem is error else error)
    await exchange.answer(wire.Offered(outcomes=outcomes), form=exchange.answer_format)


async def _offer_chunk(
    queue: ServedQueue, messages: list[Message[bytes]], numbers: list[int]
) -> list[wire.Outcome]:
    try:
        return await _offer_many(queue, messages, "{}.")
    except Problem as problem:
        place, _, argument = (problem.argument or "").partition(".")
        if place.isdigit():
            problem.argument = f"line {numbers[int(place)]}.{argument}"
        raise


def _line_message(line: bytes, type_name: str, number: int) -> Message[bytes]:
    place = f"line {number}"
    try:
        return _message(_decode_line(line), type_name, f"{place}.")
    except UNREADABLE as error:
        raise undecodable(error, place, wire.OfferedMessage) from None


async def _lines(exchange: Exchange) -> AsyncIterator[tuple[int, bytes]]:
    """Cut the body into lines as it comes, and number them; empty lines are left out."""
    limits = exchange.service.limits
    begun, number = bytearray(), 0
    async for chunk in exchange.chunks():
        begun += chunk
        whole: list[bytes] = []
        if b"\n" in chunk:  # a long line must not be copied for each of its chunks
            *whole, rest = bytes(begun).split(b"\n")
            begun = bytearray(rest)
        for line in whole:
            number += 1
            if number > limits.stream_messages:
                raise too_large(f"a stream may have at most {limits.stream_messages} lines")
            if line.strip():
                yield number, line
        if len(begun) > limits.body_bytes:
            raise too_large(f"a line may have at most {limits.body_bytes} bytes")
    if begun.strip():
        yield number + 1, bytes(begun)


ROUTES = (
    Route(
        "POST",
        "/v1/queues/{queue}/messages",
        post,
        "Offer one message, a list of them, or a stream of lines",
        Scope.OFFER,
        body=wire.OfferedMessage | list[wire.OfferedMessage],
        answer=wire.Offered,
        parameters=(QUEUE, TYPE),
        body_types=(*HOT_TYPES, NDJSON.decode()),
        answer_types=HOT_TYPES,
    ),
    Route(
        "PUT",
        "/v1/queues/{queue}/messages/{key}",
        put,
        "Offer the body as the payload of a key",
        Scope.OFFER,
        body=object,
        answer=wire.Offered,
        parameters=(QUEUE, KEY, TYPE, DUE_AT, DELAY, REPLACE, EXPIRES),
        body_types=("application/json", "application/octet-stream"),
        answer_types=HOT_TYPES,
    ),
)

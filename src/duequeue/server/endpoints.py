"""Endpoints: define, show, rotate the secret, disable, enable, remove."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from duequeue.backoff import Backoff
from duequeue.callbacks.defining import DefaultTaken, Defined, Definitions
from duequeue.callbacks.endpoint import BACKOFF, Endpoint, full_endpoint_id, read_rate
from duequeue.callbacks.guard import Refused
from duequeue.callbacks.records import QUEUE as OWN_QUEUE
from duequeue.callbacks.records import Entry, Records
from duequeue.callbacks.signing_keys import fingerprint, public_half
from duequeue.errors import InvalidArgument
from duequeue.instants import instant_text, nearest_instant, span_to_millis
from duequeue.message import checked_name
from duequeue.server import wire
from duequeue.server.exchange import Exchange
from duequeue.server.payloads import JSON
from duequeue.server.problems import Problem, invalid, not_found
from duequeue.server.queues import Queues
from duequeue.server.routing import Parameter, Route
from duequeue.server.times import Duration, read_duration
from duequeue.server.tokens import Scope
from duequeue.server.wire_endpoints import (
    Delays,
    EndpointDefinition,
    EndpointList,
    EndpointStatus,
    SecretRotation,
    ShownDelays,
    ShownSecret,
    SwitchOff,
)

ID = Parameter("id", wire.EndpointId, "The id of the endpoint", required=True, place="path")
QUEUE = Parameter("queue", wire.QueueName, "Only the endpoints of this queue")


class Access(NamedTuple):
    """The endpoints of the database, while their queue is open."""

    records: Records
    definitions: Definitions


class EndpointKeeper:
    """Opens the queue of endpoints when it is needed."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._open: Access | None = None
        self._of: object = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Access]:
        """Keep the endpoints open until the end of the block."""
        async with self._queues.using(OWN_QUEUE, JSON) as opened:
            if self._of is not opened or self._open is None:
                records = Records(opened.queue, opened.context)
                self._of, self._open = opened, Access(records, Definitions(records))
            yield self._open


async def put(exchange: Exchange) -> None:
    """Define an endpoint, or change it."""
    asked: EndpointDefinition = await exchange.decoded(EndpointDefinition)
    exchange.check(Scope.ADMIN, asked.queue)
    if exchange.service.is_own(asked.queue):
        raise invalid("queue", "this queue belongs to the server itself")
    await exchange.check_queue(asked.queue, asked.type)  # callbacks would make it
    async with exchange.service.endpoints.open() as access:
        identity, before = await _named(exchange, access)
        endpoint = _endpoint(identity, asked)
        if before is not None:
            exchange.check(Scope.ADMIN, before.endpoint.queue)
        elif not endpoint.prefix.startswith(exchange.grant.prefix):
            raise Problem(403, "forbidden", "the token does not allow endpoints of that prefix")
        endpoint.checked()
        try:
            exchange.service.check_callback(endpoint.url)
        except Refused as error:
            raise invalid("url", error.reason) from None
        try:
            defined = await access.definitions.put(endpoint, asked.secret, default=asked.default)
        except DefaultTaken as error:
            raise Problem(409, "default-taken", str(error), argument="default") from None
        await exchange.answer(_shown(exchange, defined, access.records))


async def list_all(exchange: Exchange) -> None:
    """List the endpoints of the queues that the token may see."""
    only = exchange.query.get("queue")
    if only is not None:
        exchange.check(Scope.READ, checked_name(only))
    async with exchange.service.endpoints.open() as access:
        found = (await access.records.all()).values()
        shown = [
            _shown(exchange, Defined(each), access.records)
            for each in found
            if exchange.grant.allows(Scope.READ, each.endpoint.queue)
            and only in {None, each.endpoint.queue}
        ]
    await exchange.answer(EndpointList(shown))


async def read(exchange: Exchange) -> None:
    """Show one endpoint."""
    async with exchange.service.endpoints.open() as access:
        entry = await _find(exchange, access, Scope.READ)
        await exchange.answer(_shown(exchange, Defined(entry), access.records))


async def remove(exchange: Exchange) -> None:
    """Remove an endpoint; its messages stay in their queue."""
    async with exchange.service.endpoints.open() as access:
        entry = await _find(exchange, access, Scope.ADMIN)
        removed = await access.records.remove(entry.endpoint.id)
        await exchange.answer(wire.Changed(removed))


async def rotate(exchange: Exchange) -> None:
    """Sign with a new secret, and for a while with the old one too."""
    asked: SecretRotation = await exchange.decoded(SecretRotation)
    if asked.secret is not None and asked.kind is not None:
        raise invalid(
            "kind", "kind applies only to a secret that the server makes; leave out kind or secret"
        )
    async with exchange.service.endpoints.open() as access:
        entry = await _find(exchange, access, Scope.ADMIN)
        overlap = read_duration(asked.overlap, "overlap")
        changed = await access.definitions.rotate(
            entry.endpoint.id, overlap, asked.secret, asked.kind
        )
        if changed is None:
            raise _no_endpoint()
        await exchange.answer(_shown(exchange, changed, access.records))


async def disable(exchange: Exchange) -> None:
    """Stop calling an endpoint."""
    asked: SwitchOff = await exchange.decoded(SwitchOff)
    async with exchange.service.endpoints.open() as access:
        entry = await _find(exchange, access, Scope.ADMIN)
        changed = await access.definitions.disable(entry.endpoint.id, asked.reason)
        await exchange.answer(wire.Changed(bool(changed)))


async def enable(exchange: Exchange) -> None:
    """Call an endpoint again, and forget that it failed."""
    async with exchange.service.endpoints.open() as access:
        entry = await _find(exchange, access, Scope.ADMIN)
        changed = await access.definitions.enable(entry.endpoint.id)
        await exchange.answer(wire.Changed(bool(changed)))


async def _find(exchange: Exchange, access: Access, scope: Scope) -> Entry:
    """Return the endpoint that the path names, if the token may do this with its queue."""
    _, found = await _named(exchange, access)
    if found is None:
        raise _no_endpoint()
    exchange.check(scope, found.endpoint.queue)
    return found


async def _named(exchange: Exchange, access: Access) -> tuple[str, Entry | None]:
    """Return the full id that the path means, and its endpoint if the token may know of it.

    An id without a prefix means the one of the token's own prefix. If there is none, it means the
    one that belongs to no prefix, so that an administrator can define endpoints for others.
    """
    prefix, has_prefix, name = exchange.path["id"].rpartition("/")
    own = full_endpoint_id(prefix if has_prefix else exchange.grant.prefix, name)
    for identity in (own,) if has_prefix else (own, name):
        found = await access.records.get(identity)
        if found is not None and exchange.grant.allows_something(found.endpoint.queue):
            return identity, found
    return own, None


def _shown_id(exchange: Exchange, endpoint: Endpoint) -> str:
    """Return an id by which the same token finds the endpoint again."""
    if endpoint.prefix == exchange.grant.prefix:
        return endpoint.name
    return f"{endpoint.prefix}/{endpoint.name}"


def _no_endpoint() -> Problem:
    return not_found(
        "no endpoint has this id; `duequeue endpoint ls` and GET /v1/endpoints list them"
    )


def _endpoint(identity: str, asked: EndpointDefinition) -> Endpoint:
    backoff = _backoff(asked.backoff)
    return Endpoint(
        id=identity,
        queue=asked.queue,
        type=asked.type,
        url=asked.url,
        timeout=_millis(asked.timeout, "timeout"),
        concurrency=asked.concurrency,
        rate=None if asked.rate is None else read_rate(asked.rate),
        attempts=asked.attempts,
        first_delay=span_to_millis(backoff.first, "first"),
        longest_delay=span_to_millis(backoff.longest, "longest"),
        delay_factor=backoff.factor,
        respond=asked.respond,
        keep=_millis(asked.keep, "keep"),
    )


def _backoff(given: Delays | str | None) -> Backoff:
    match given:
        case None:
            return BACKOFF
        case str():
            try:
                return Backoff.parse(given, BACKOFF)
            except InvalidArgument as error:
                raise InvalidArgument("backoff", text=f"backoff: {error}") from None
        case Delays():
            first = read_duration(given.first, "first")
            return Backoff(first, read_duration(given.longest, "longest"), given.factor)


def _millis(given: Duration, argument: str) -> int:
    return span_to_millis(read_duration(given, argument), argument)


def _shown(exchange: Exchange, defined: Defined, records: Records) -> EndpointStatus:
    endpoint, now = defined.entry.endpoint, records.context.now()
    condition = defined.entry.condition(now)
    keys = defined.entry.keys
    older = [
        ShownSecret(fingerprint(each.text), public_half(each.text), _text(each.until))
        for each in keys.in_overlap(now)
    ]
    return EndpointStatus(
        id=_shown_id(exchange, endpoint),
        queue=endpoint.queue,
        type=endpoint.type,
        url=endpoint.url,
        timeout=endpoint.timeout / 1000,
        concurrency=endpoint.concurrency,
        rate=endpoint.rate,
        attempts=endpoint.attempts,
        backoff=ShownDelays(
            endpoint.first_delay / 1000, endpoint.longest_delay / 1000, endpoint.delay_factor
        ),
        respond=endpoint.respond,
        keep=endpoint.keep / 1000,
        default=endpoint.default,
        state=condition.state,
        reason=condition.reason,
        secrets=[
            ShownSecret(fingerprint(keys.text), public_half(keys.text)),
            *older,
        ],
        since=None if condition.state == "active" else _text(condition.since),
        until=None if condition.until is None else _text(condition.until),
        secret=defined.new_secret,
    )


def _text(millis: int) -> str:
    return instant_text(nearest_instant(millis))


_ENDPOINT = "/v1/endpoints/{id}"

ROUTES = (
    Route(
        "GET",
        "/v1/endpoints",
        list_all,
        "List the endpoints of all queues, or of one",
        answer=EndpointList,
        parameters=(QUEUE,),
    ),
    Route(
        "GET",
        _ENDPOINT,
        read,
        "Show an endpoint and its state",
        answer=EndpointStatus,
        parameters=(ID,),
        errors=(404,),
    ),
    Route(
        "PUT",
        _ENDPOINT,
        put,
        "Define an endpoint, or change it",
        body=EndpointDefinition,
        answer=EndpointStatus,
        parameters=(ID,),
        errors=(409,),
    ),
    Route(
        "DELETE",
        _ENDPOINT,
        remove,
        "Remove an endpoint; its messages stay in their queue",
        answer=wire.Changed,
        parameters=(ID,),
        errors=(404,),
    ),
    Route(
        "POST",
        f"{_ENDPOINT}:rotate-secret",
        rotate,
        "Sign with a new secret, and for a while with the old one too",
        body=SecretRotation,
        answer=EndpointStatus,
        parameters=(ID,),
        errors=(404,),
    ),
    Route(
        "POST",
        f"{_ENDPOINT}:disable",
        disable,
        "Stop calling an endpoint",
        body=SwitchOff,
        answer=wire.Changed,
        parameters=(ID,),
        errors=(404,),
    ),
    Route(
        "POST",
        f"{_ENDPOINT}:enable",
        enable,
        "Call an endpoint again, and forget that it failed",
        answer=wire.Changed,
        parameters=(ID,),
        errors=(404,),
    ),
)

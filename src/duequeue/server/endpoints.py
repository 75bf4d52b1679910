"""Endpoints: define, show, rotate the secret, disable, enable, remove."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from duequeue.callbacks.defining import Defined, Definitions, endpoint_of
from duequeue.callbacks.definition import (
    EndpointDefinition,
    EndpointList,
    EndpointStatus,
    SecretRotation,
    SwitchOff,
)
from duequeue.callbacks.endpoint import full_endpoint_id
from duequeue.callbacks.guard import Refused
from duequeue.callbacks.records import QUEUE as OWN_QUEUE
from duequeue.callbacks.records import Records, StoredEndpoint
from duequeue.errors import InvalidArgument
from duequeue.message import checked_name
from duequeue.server import wire
from duequeue.server.exchange import Exchange
from duequeue.server.payloads import JSON
from duequeue.server.problems import Problem, invalid, not_found
from duequeue.server.queues import Queues
from duequeue.server.routing import Parameter, Route
from duequeue.server.tokens import Scope

ID = Parameter("id", wire.EndpointId, "The id of the endpoint", required=True, place="path")
QUEUE = Parameter("queue", wire.QueueName, "Only the endpoints of this queue")


class OpenEndpoints(NamedTuple):
    """The endpoints of the database, while their queue is open."""

    records: Records
    definitions: Definitions


class EndpointKeeper:
    """Opens the queue of endpoints when it is needed."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._open: OpenEndpoints | None = None
        self._of: object = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[OpenEndpoints]:
        """Keep the endpoints open until the end of the block."""
        async with self._queues.using(OWN_QUEUE, JSON) as opened:
            if self._of is not opened or self._open is None:
                records = Records(opened.queue, opened.context)
                self._of, self._open = opened, OpenEndpoints(records, Definitions(records))
            yield self._open


async def put(exchange: Exchange) -> None:
    """Define an endpoint, or change it."""
    asked: EndpointDefinition = await exchange.decoded(EndpointDefinition)
    exchange.check(Scope.ADMIN, asked.queue)
    await exchange.check_queue(asked.queue, asked.type)  # callbacks would make it
    async with exchange.service.endpoints.open() as access:
        identity, before = await _named(exchange, access)
        endpoint = endpoint_of(identity, asked)
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
        except InvalidArgument as error:
            if error.argument == "default":  # another endpoint is
                raise Problem(409, "default-taken", str(error), argument="default") from None
            raise
        await exchange.answer(_shown(exchange, access, defined))


async def list_all(exchange: Exchange) -> None:
    """List the endpoints of the queues that the token may see."""
    only = exchange.query.get("queue")
    if only is not None:
        exchange.check(Scope.READ, checked_name(only))
    async with exchange.service.endpoints.open() as access:
        found = (await access.records.all()).values()
        shown = [
            _shown(exchange, access, Defined(each))
            for each in found
            if exchange.grant.allows(Scope.READ, each.endpoint.queue)
            and only in {None, each.endpoint.queue}
        ]
    await exchange.answer(EndpointList(shown))


async def read(exchange: Exchange) -> None:
    """Show one endpoint."""
    async with exchange.service.endpoints.open() as access:
        entry = await _find(exchange, access, Scope.READ)
        await exchange.answer(_shown(exchange, access, Defined(entry)))


async def remove(exchange: Exchange) -> None:
    """Remove an endpoint; its messages stay in their queue."""
    async with exchange.service.endpoints.open() as access:
        entry = await _find(exchange, access, Scope.ADMIN)
        removed = await access.definitions.remove(entry.endpoint.id)
        await exchange.answer(wire.Changed(removed))


async def rotate(exchange: Exchange) -> None:
    """Sign with a new secret, and for a while with the old one too."""
    asked: SecretRotation = await exchange.decoded(SecretRotation)
    async with exchange.service.endpoints.open() as access:
        entry = await _find(exchange, access, Scope.ADMIN)
        changed = await access.definitions.rotate(entry.endpoint.id, asked)
        if changed is None:
            raise _no_endpoint()
        await exchange.answer(_shown(exchange, access, changed))


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


async def _find(exchange: Exchange, access: OpenEndpoints, scope: Scope) -> StoredEndpoint:
    """Return the endpoint that the path names, if the token may do this with its queue."""
    _, found = await _named(exchange, access)
    if found is None:
        raise _no_endpoint()
    exchange.check(scope, found.endpoint.queue)
    return found


async def _named(exchange: Exchange, access: OpenEndpoints) -> tuple[str, StoredEndpoint | None]:
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


def _shown(exchange: Exchange, access: OpenEndpoints, defined: Defined) -> EndpointStatus:
    """Show an endpoint, with an id by which the same token finds it again."""
    endpoint = defined.entry.endpoint
    is_own = endpoint.prefix == exchange.grant.prefix
    identity = endpoint.name if is_own else f"{endpoint.prefix}/{endpoint.name}"
    return access.definitions.shown(defined, identity)


def _no_endpoint() -> Problem:
    return not_found(
        "no endpoint has this id; `duequeue endpoint ls` and GET /v1/endpoints list them"
    )


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

"""The response to a message, which a producer may wait for."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from duequeue.drive.actions import Flow
from duequeue.drive.stoppable import StoppableFlow, Stopped
from duequeue.errors import NotAnswered
from duequeue.flows import responding
from duequeue.instants import instant_text
from duequeue.message import checked_key
from duequeue.payloads.stored_bytes import StoredBytes
from duequeue.response import Response
from duequeue.server import wire
from duequeue.server.departures import ClientGone
from duequeue.server.exchange import Exchange
from duequeue.server.formats import Format
from duequeue.server.missing_queues import wait_for_queue
from duequeue.server.parameters import HOT_TYPES, KEY, QUEUE, TYPE
from duequeue.server.payloads import JSON, to_wire
from duequeue.server.problems import Problem, invalid
from duequeue.server.queues import ServedQueue
from duequeue.server.routing import Parameter, Route
from duequeue.server.times import read_duration
from duequeue.server.tokens import Scope

WAIT = Parameter("wait", str, 'How long to wait for the response, such as "30s"; 0 if not given')
# Responses may have any type, so they stay as they were stored until they are shown.
_STORED = StoredBytes(JSON)


async def read(exchange: Exchange) -> None:
    """Return the response of a key, and wait for it if asked to."""
    name = exchange.path["queue"]
    if not exchange.grant.allows(Scope.READ, name):
        exchange.check(Scope.OFFER, name)
    key, wait = checked_key(exchange.path["key"]), _wait(exchange)
    try:
        found = await _response(exchange, key, wait)
        exchange.check_token_again()
    except NotAnswered as error:
        raise Problem(
            409, "not-answered", "the message was buried or dropped", reason=error.reason
        ) from error
    if found is None:
        raise Problem(404, "no-response", "the key has no response, or none in time")
    form = exchange.answer_format
    await exchange.answer(_shown(key, found, form), form=form)


async def forget(exchange: Exchange) -> None:
    """Delete the response of a key."""
    queue = await exchange.queue()
    await exchange.answer(wire.Changed(await queue.queue.forget_response(exchange.path["key"])))


def _wait(exchange: Exchange) -> timedelta:
    wait = read_duration(exchange.query.get("wait", 0), "wait")
    most = timedelta(seconds=exchange.service.limits.wait_seconds)
    if wait > most:
        raise invalid("wait", f"wait must be at most {most.total_seconds():g} s")
    return wait


async def _response(exchange: Exchange, key: str, wait: timedelta) -> Response | None:
    if not wait:
        queue = await exchange.queue()
        return await queue.drive(_look(queue, key, wait))
    queue = await exchange.queue()
    if not queue.exists:  # a producer may wait before its first offer
        wait = await wait_for_queue(exchange, queue.name, queue.type_name, wait)
        queue = await exchange.queue()
    stoppable = StoppableFlow(queue.perform)
    gone = asyncio.ensure_future(exchange.receive())
    gone.add_done_callback(lambda _: stoppable.stop())
    try:
        with exchange.service.live.waiting(stoppable, exchange.grant):
            return await stoppable.run(_look(queue, key, wait))
    except Stopped:
        if gone.done():
            raise ClientGone from None
        return None
    finally:
        gone.cancel()


def _look(queue: ServedQueue, key: str, wait: timedelta) -> Flow[Response | None]:
    return responding.response(replace(queue.patient_for(wait), response_codec=_STORED), key, wait)


def _shown(key: str, found: Response, form: Format) -> wire.MessageResponse:
    value, base64 = to_wire(found.value, JSON, form)
    return wire.MessageResponse(key, instant_text(found.responded_at), value, base64)


_RESPONSE = "/v1/queues/{queue}/responses/{key}"

ROUTES = (
    Route(
        "GET",
        _RESPONSE,
        read,
        "Return the response to a message, and wait for it if asked to",
        answer=wire.MessageResponse,
        parameters=(QUEUE, KEY, TYPE, WAIT),
        answer_types=HOT_TYPES,
        errors=(404, 409, 429),
    ),
    Route(
        "DELETE",
        _RESPONSE,
        forget,
        "Delete the response to a message",
        Scope.OFFER,
        answer=wire.Changed,
        parameters=(QUEUE, KEY, TYPE),
    ),
)

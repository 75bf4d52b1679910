"""The messages of a queue: list, read, drop, reschedule."""

from datetime import timedelta
from functools import partial
from typing import Any

from duequeue.defaults import LONGEST_PAGE, PAGE
from duequeue.instants import instant_text
from duequeue.message import Snapshot
from duequeue.server import wire
from duequeue.server.exchange import Exchange
from duequeue.server.formats import Format
from duequeue.server.operations import dropping
from duequeue.server.parameters import (
    DUE_AFTER,
    DUE_BEFORE,
    HOT_TYPES,
    KEY,
    KEY_PREFIX,
    LIMIT,
    QUEUE,
    TYPE,
)
from duequeue.server.payloads import to_wire
from duequeue.server.problems import Problem, invalid, not_found
from duequeue.server.routing import Parameter, Route
from duequeue.server.times import instant_text_or_none, read_due
from duequeue.server.tokens import Scope

STATE = Parameter("state", wire.LiveState, "Only messages in this state")
CURSOR = Parameter("cursor", str, "The `next` of the previous page")
CONFIRM = Parameter("confirm", wire.QueueName, "The queue's own name, to drop all of its messages")


async def list_page(exchange: Exchange) -> None:
    """List messages in due order."""
    limit = exchange.number("limit", PAGE, 1, LONGEST_PAGE)
    cursor = exchange.query.get("cursor")
    queue = await exchange.queue()
    read = partial(queue.looking.list, **_filters(exchange), after=cursor, limit=limit)
    page = await exchange.look(("list", queue.kind), read)
    form = exchange.answer_format
    shown = [_stored(each, queue.type_name, form) for each in page.messages]
    await exchange.answer(wire.MessagePage(shown, page.next), form=form)


async def drop_many(exchange: Exchange) -> None:
    """Drop all messages at once, or those that match a filter in the background."""
    query = exchange.query
    filters = {"state", "key_prefix", "due_after", "due_before"} & query.keys()
    queue = await exchange.queue()
    if "confirm" in query:
        if filters:
            raise invalid("confirm", "confirm drops all messages; leave the filters out")
        dropped = await queue.queue.drop_all(query["confirm"])
        await exchange.answer(wire.Dropped(dropped))
        return
    if not filters:
        raise invalid("confirm", "give a filter, or confirm=<the queue's name> to drop everything")
    asked = _filters(exchange)
    await queue.queue.list(**asked, limit=1)  # raises if a filter is not valid
    operation = exchange.service.operations.start(queue, "drop", dropping(queue, asked))
    await exchange.answer(operation.status(), status=202)


def _filters(exchange: Exchange) -> dict[str, Any]:
    return {
        "state": exchange.query.get("state"),
        "prefix": exchange.query.get("key_prefix"),
        "due_from": exchange.instant("due_after"),
        "due_to": exchange.instant("due_before"),
    }


async def read(exchange: Exchange) -> None:
    """Read a message in any state."""
    queue = await exchange.queue()
    found = await queue.queue.read(exchange.path["key"])
    if found is None:
        raise _no_message()
    form = exchange.answer_format
    await exchange.answer(_stored(found, queue.type_name, form), form=form)


async def drop(exchange: Exchange) -> None:
    """Drop a message."""
    queue = await exchange.queue()
    if not await queue.queue.drop(exchange.path["key"]):
        raise _no_message()
    await exchange.answer(wire.Dropped(1))


async def reschedule(exchange: Exchange) -> None:
    """Make a message due at another instant."""
    asked: wire.Reschedule = await exchange.decoded(wire.Reschedule)
    due = read_due(asked.due_at, asked.delay)
    if due is None:
        raise invalid("due_at", "give due_at or delay")
    queue = await exchange.queue()
    if not await queue.queue.reschedule(exchange.path["key"], due):
        raise _no_message()
    await exchange.answer(wire.Rescheduled(rescheduled=True))


async def run_now(exchange: Exchange) -> None:
    """Make a message due now."""
    queue = await exchange.queue()
    if not await queue.queue.reschedule(exchange.path["key"], timedelta(0)):
        raise _no_message()
    await exchange.answer(wire.Rescheduled(rescheduled=True))


def _no_message() -> Problem:
    return not_found("the queue has no message with this key")


def _stored(found: Snapshot[bytes], type_name: str, form: Format) -> wire.StoredMessage:
    payload, base64 = to_wire(found.payload, type_name, form)
    return wire.StoredMessage(
        key=found.key,
        due_at=instant_text(found.due_at),
        state=found.state.value,
        attempts=found.attempts,
        headers=found.headers,
        payload=payload,
        payload_b64=base64,
        deliver_at=instant_text_or_none(found.deliver_at),
        leased_until=instant_text_or_none(found.leased_until),
        expires_at=instant_text_or_none(found.expires_at),
        reason=found.reason,
    )


_MESSAGE = "/v1/queues/{queue}/messages/{key}"

ROUTES = (
    Route(
        "GET",
        "/v1/queues/{queue}/messages",
        list_page,
        "List the messages of a queue in due order",
        Scope.READ,
        answer=wire.MessagePage,
        parameters=(QUEUE, TYPE, STATE, KEY_PREFIX, DUE_AFTER, DUE_BEFORE, CURSOR, LIMIT),
        answer_types=HOT_TYPES,
    ),
    Route(
        "DELETE",
        "/v1/queues/{queue}/messages",
        drop_many,
        "Drop all messages, or start an operation that drops those that match a filter",
        Scope.ADMIN,
        answer=wire.Dropped,
        other_answers=((202, wire.OperationStatus),),
        parameters=(QUEUE, TYPE, CONFIRM, STATE, KEY_PREFIX, DUE_AFTER, DUE_BEFORE),
    ),
    Route(
        "GET",
        _MESSAGE,
        read,
        "Read a message in any state",
        Scope.READ,
        answer=wire.StoredMessage,
        parameters=(QUEUE, KEY, TYPE),
        answer_types=HOT_TYPES,
        errors=(404,),
    ),
    Route(
        "DELETE",
        _MESSAGE,
        drop,
        "Drop a message, leased or not",
        Scope.OFFER,
        answer=wire.Dropped,
        parameters=(QUEUE, KEY, TYPE),
        errors=(404,),
    ),
    Route(
        "PATCH",
        _MESSAGE,
        reschedule,
        "Make a message due at another instant",
        Scope.OFFER,
        body=wire.Reschedule,
        answer=wire.Rescheduled,
        parameters=(QUEUE, KEY, TYPE),
        errors=(404,),
    ),
    Route(
        "POST",
        _MESSAGE + ":run-now",
        run_now,
        "Make a message due now",
        Scope.OFFER,
        answer=wire.Rescheduled,
        parameters=(QUEUE, KEY, TYPE),
        errors=(404,),
    ),
)

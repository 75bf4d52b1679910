"""The buried messages of a queue: list, revive, purge."""

from functools import partial

from duequeue import message
from duequeue.defaults import LONGEST_PAGE, PAGE
from duequeue.flows.settling import storable
from duequeue.instants import due_millis, instant_text
from duequeue.server import wire
from duequeue.server.exchange import Exchange
from duequeue.server.formats import Format
from duequeue.server.operations import reviving
from duequeue.server.parameters import HOT_TYPES, LIMIT, QUEUE, TYPE
from duequeue.server.payloads import to_wire
from duequeue.server.problems import invalid
from duequeue.server.routing import Parameter, Route
from duequeue.server.times import read_due
from duequeue.server.tokens import Scope

REASON = Parameter("reason", str, "Only burials with this text in their reason")
CURSOR = Parameter("cursor", str, "The `next` of the previous page, or the id of a burial")


async def list_page(exchange: Exchange) -> None:
    """List burials, oldest first."""
    limit = exchange.number("limit", PAGE, 1, LONGEST_PAGE)
    cursor, reason = exchange.query.get("cursor"), exchange.query.get("reason")
    queue = await exchange.queue()
    read = partial(queue.looking.buried, limit, cursor, reason)
    found = await exchange.look(("buried", queue.kind), read)
    form = exchange.answer_format
    shown = [_buried(each, queue.type_name, form) for each in found]
    following = shown[-1].id if len(shown) == limit else None
    await exchange.answer(wire.BuriedPage(shown, following), form=form)


async def revive(exchange: Exchange) -> None:
    """Put burials back, by key at once or by reason in the background."""
    asked: wire.Revive = await exchange.decoded(wire.Revive)
    due = read_due(asked.due_at, asked.delay)
    if (asked.keys is None) == (asked.reason is None):
        raise invalid("keys", 'give keys, or a reason; {"reason": ""} revives everything')
    queue = await exchange.queue()
    if asked.reason is not None:
        now = queue.context.now()
        work = reviving(queue, storable(asked.reason), due_millis(due, now), now)
        operation = exchange.service.operations.start(queue, "revive", work)
        await exchange.answer(operation.status(), status=202)
        return
    keys = asked.keys or []
    most = exchange.service.limits.batch_messages
    if len(keys) > most:
        raise invalid("keys", f"keys may have at most {most} items")
    names = [wire.BurialName(each) if isinstance(each, str) else each for each in keys]
    revived = 0
    for each in names:
        revived += await queue.queue.revive(each.key, due, each.id)
    await exchange.answer(wire.Revived(revived))


async def purge(exchange: Exchange) -> None:
    """Delete burials, by id or by age."""
    asked: wire.Purge = await exchange.decoded(wire.Purge)
    if (asked.ids is None) == (asked.before is None):
        raise invalid("before", "give either before or ids")
    queue = await exchange.queue()
    if asked.before is not None:
        purged = await queue.queue.purge_buried(asked.before)
    else:
        ids = asked.ids or []
        most = exchange.service.limits.batch_messages
        if len(ids) > most:
            raise invalid("ids", f"ids may have at most {most} items")
        purged = 0
        for each in ids:
            purged += await queue.queue.delete_buried(each)
    await exchange.answer(wire.Purged(purged))


def _buried(
    found: message.BuriedMessage[bytes], type_name: str, form: Format
) -> wire.BuriedMessage:
    payload, base64 = to_wire(found.raw, type_name, form)
    return wire.BuriedMessage(
        id=found.id,
        key=found.key,
        due_at=instant_text(found.due_at),
        attempts=found.attempts,
        reason=found.reason,
        buried_at=instant_text(found.buried_at),
        headers=found.headers,
        payload=payload,
        payload_b64=base64,
    )


_BURIED = "/v1/queues/{queue}/buried"

ROUTES = (
    Route(
        "GET",
        _BURIED,
        list_page,
        "List the buried messages of a queue, oldest first",
        Scope.READ,
        answer=wire.BuriedPage,
        parameters=(QUEUE, TYPE, REASON, CURSOR, LIMIT),
        answer_types=HOT_TYPES,
    ),
    Route(
        "POST",
        f"{_BURIED}:revive",
        revive,
        "Put buried messages back, by key, or by reason as a background operation",
        Scope.ADMIN,
        body=wire.Revive,
        answer=wire.Revived,
        other_answers=((202, wire.OperationStatus),),
        parameters=(QUEUE, TYPE),
    ),
    Route(
        "POST",
        f"{_BURIED}:purge",
        purge,
        "Delete buried messages, by id or by age",
        Scope.ADMIN,
        body=wire.Purge,
        answer=wire.Purged,
        parameters=(QUEUE, TYPE),
    ),
)

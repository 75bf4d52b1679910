"""What became of the messages that left a queue."""

from functools import partial

from duequeue import settled
from duequeue.defaults import LONGEST_HISTORY, PAGE
from duequeue.instants import instant_text
from duequeue.server import wire
from duequeue.server.exchange import NDJSON, Exchange
from duequeue.server.formats import JSON
from duequeue.server.parameters import QUEUE, TYPE
from duequeue.server.routing import Parameter, Route
from duequeue.server.times import instant_text_or_none
from duequeue.server.tokens import Scope

LIMIT = Parameter("limit", wire.HistoryLength, "How many to return at most")
OF_KEY = Parameter("key", wire.Key, "Only messages with this key")


async def read(exchange: Exchange) -> None:
    """List settled messages, the newest first."""
    limit = exchange.number("limit", PAGE, 1, LONGEST_HISTORY)
    queue = await exchange.queue()
    settled_ones = partial(queue.looking.history, limit, exchange.query.get("key"))
    found = await exchange.look(("history", queue.kind), settled_ones)
    shown = [_settled(each) for each in found]
    if NDJSON in exchange.headers.get(b"accept", b""):
        lines = b"".join(JSON.encode(each) + b"\n" for each in shown)
        await exchange.send_bytes(lines, NDJSON)
        return
    await exchange.answer(wire.HistoryPage(shown))


def _settled(found: settled.Settled) -> wire.SettledMessage:
    late, handled = found.lateness, found.handler_time
    return wire.SettledMessage(
        key=found.key,
        due_at=instant_text(found.due_at),
        delivered_at=instant_text_or_none(found.delivered_at),
        settled_at=instant_text(found.settled_at),
        attempts=found.attempts,
        outcome=found.outcome.value,
        lateness_seconds=None if late is None else late.total_seconds(),
        handler_seconds=None if handled is None else handled.total_seconds(),
    )


ROUTES = (
    Route(
        "GET",
        "/v1/queues/{queue}/history",
        read,
        "List the messages that left a queue, the newest first",
        Scope.READ,
        answer=wire.HistoryPage,
        parameters=(QUEUE, TYPE, LIMIT, OF_KEY),
        answer_types=("application/json", NDJSON.decode()),
    ),
)

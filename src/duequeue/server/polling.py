"""`:poll`: leases what is due, and waits for it if asked to."""

import asyncio
import re
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

from duequeue.drive.stoppable import Stopped
from duequeue.errors import DueQueueError
from duequeue.flows import polling
from duequeue.flows.context import Context
from duequeue.flows.lease_tokens import token_of
from duequeue.flows.settling import give_back
from duequeue.instants import positive_millis
from duequeue.leased import LeasedMessage
from duequeue.server import wire
from duequeue.server.departures import ClientGone
from duequeue.server.exchange import Exchange
from duequeue.server.formats import Format
from duequeue.server.lookouts import PollFlow
from duequeue.server.missing_queues import wait_for_queue
from duequeue.server.parameters import HOT_TYPES, QUEUE, TYPE
from duequeue.server.payloads import to_wire
from duequeue.server.problems import Problem, invalid
from duequeue.server.queues import ServedQueue
from duequeue.server.routing import Route
from duequeue.server.settling import settle
from duequeue.server.times import instant_text_or_none, millis_text, read_duration
from duequeue.server.tokens import Scope

_PREFER_WAIT = re.compile(rb"\bwait\s*=\s*(\d{1,4})\b")
Found = list[LeasedMessage[bytes]]
Verdicts = dict[str, wire.Verdict]


async def post(exchange: Exchange) -> None:
    """Settle what the request names, then lease messages."""
    asked: wire.Poll = await exchange.decoded(wire.Poll)
    limits = exchange.service.limits
    if not 0 <= asked.limit <= limits.poll_messages:
        raise invalid("limit", f"limit must be a number from 0 to {limits.poll_messages}")
    wait = _wait(exchange, asked)
    lease = None if asked.lease is None else read_duration(asked.lease, "lease")
    queue = await exchange.queue()
    if wait and asked.limit and not queue.exists:  # a consumer may come before the first producer
        wait = await wait_for_queue(exchange, queue.name, queue.type_name, wait)
        queue = await exchange.queue()
    context = queue.patient_for(wait)
    if lease is not None:
        context = replace(context, lease=positive_millis(lease, "lease"))
    if wait and asked.limit:
        settled, found = await _wait_for_messages(exchange, queue, context, asked, wait)
        try:
            exchange.check_token_again()
        except Problem:
            await _give_back(queue, found)
            raise
    else:
        settled = await _settled(exchange, queue, asked)
        found = await queue.drive(polling.try_poll_many(context, _wrap(context), asked.limit))
    most = limits.poll_bytes if asked.max_bytes is None else asked.max_bytes
    found = await _within_bytes(queue, found, min(most, limits.poll_bytes))
    form = exchange.answer_format
    shown = wire.Polled([_delivery(each, queue, form) for each in found], settled)
    await exchange.answer(shown, form=form)


def _wait(exchange: Exchange, asked: wire.Poll) -> timedelta:
    most = timedelta(seconds=exchange.service.limits.wait_seconds)
    if asked.wait is None:
        preferred = _PREFER_WAIT.search(exchange.headers.get(b"prefer", b""))
        return min(most, timedelta(seconds=int(preferred[1]))) if preferred else timedelta(0)
    wait = read_duration(asked.wait, "wait")
    if wait > most:
        raise invalid("wait", f"wait must be at most {most.total_seconds():g} s")
    return wait


async def _wait_for_messages(
    exchange: Exchange,
    queue: ServedQueue,
    context: Context[bytes],
    asked: wire.Poll,
    wait: timedelta,
) -> tuple[Verdicts, Found]:
    flow = PollFlow(queue.perform, queue.lookouts, wait.total_seconds())
    # A request that may not wait is refused here, before it has settled anything.
    with exchange.service.live.waiting(flow, exchange.grant):
        settled = await _settled(exchange, queue, asked)
        polled = flow.run(polling.poll_many(context, _wrap(context), asked.limit, wait))
        found = await _unless_gone(exchange, queue, asyncio.create_task(polled), flow)
    return settled, found


async def _settled(exchange: Exchange, queue: ServedQueue, asked: wire.Poll) -> Verdicts:
    if asked.settle is None:
        return {}
    exchange.check(Scope.SETTLE, queue.name)
    return await settle(exchange, queue, asked.settle, "settle.")


def _wrap(context: Context[bytes]) -> "partial[LeasedMessage[bytes]]":
    return partial(LeasedMessage, context.name)


async def _unless_gone(
    exchange: Exchange, queue: ServedQueue, polled: "asyncio.Task[Found]", flow: PollFlow
) -> Found:
    """Wait for messages; if the client goes away meanwhile, give them back."""
    gone = asyncio.ensure_future(exchange.receive())
    gone.add_done_callback(lambda _: flow.stop())
    found: Found = []
    try:
        with suppress(Stopped):
            found = await asyncio.shield(polled)
    except asyncio.CancelledError:
        flow.stop()
        exchange.service.in_background(_give_back_later(queue, polled))
        raise
    finally:
        is_gone = gone.done()
        gone.cancel()
    if not is_gone:
        return found
    await _give_back(queue, found)
    if exchange.service.live.draining:
        return []
    raise ClientGone


async def _give_back_later(queue: ServedQueue, polled: "asyncio.Task[Found]") -> None:
    with suppress(Stopped, DueQueueError):
        await _give_back(queue, await polled)


async def _give_back(queue: ServedQueue, found: Found) -> None:
    with suppress(DueQueueError):  # they come again when their leases end
        await queue.drive(give_back(queue.context, found))


async def _within_bytes(queue: ServedQueue, found: Found, most: int) -> Found:
    """Give back what would make the answer too long; there is always one message in it."""
    size = 0
    for place, message in enumerate(found):
        size += len(message.payload)
        if size > most and place:
            await _give_back(queue, found[place:])
            return found[:place]
    return found


def _delivery(message: LeasedMessage[bytes], queue: ServedQueue, form: Format) -> wire.Delivery:
    payload, base64 = to_wire(message.payload, queue.type_name, form, is_checked=True)
    return wire.Delivery(  # in the order of its fields, because that is faster
        message.key,
        token_of(message, queue.kind),
        message.attempt,
        message.attempt > 1,
        millis_text(message.due_millis),
        millis_text(message.lease.delivered_at),
        millis_text(message.until_millis),
        message.headers,
        payload,
        base64,
        instant_text_or_none(message.expires_at),
    )


ROUTES = (
    Route(
        "POST",
        "/v1/queues/{queue}:poll",
        post,
        "Lease the messages that are due, and wait for them if asked to",
        Scope.POLL,
        body=wire.Poll,
        answer=wire.Polled,
        parameters=(QUEUE, TYPE),
        body_types=HOT_TYPES,
        answer_types=HOT_TYPES,
        errors=(429,),
    ),
)

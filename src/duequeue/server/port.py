"""The operations of the store for clients in Python, which `Queue.open("http://…")` calls.

This is not part of the public API. Decision 44 describes it.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec

from duequeue.drive.actions import performer_async
from duequeue.drive.retrying import retrying
from duequeue.drive.steps import drive_async
from duequeue.errors import StoreBusy, StoreError, StoreUnavailable
from duequeue.instants import EARLIEST, to_millis
from duequeue.message import OfferOutcome
from duequeue.port import remote
from duequeue.port.remote import Call, WakeUp, WakeUpCall
from duequeue.port.store import LONGEST_CALL, Steps, Store
from duequeue.process.contact import one_line
from duequeue.retry_policy import RetryPolicy
from duequeue.server.examining import examined
from duequeue.server.exchange import Exchange
from duequeue.server.formats import MSGPACK
from duequeue.server.missing_queues import wait_for_queue
from duequeue.server.port_arguments import checked_arguments
from duequeue.server.port_scopes import LONG_READS, believes_clients, check_call, may_create
from duequeue.server.port_times import client_time
from duequeue.server.problems import UNREADABLE, Problem, invalid, undecodable
from duequeue.server.queues import ServedQueue
from duequeue.server.routing import Route
from duequeue.server.tokens import Scope
from duequeue.server.wakeups import Waiter, caused_by

LONGEST_WAIT = 30.0
LEAST_SECONDS = 1.0

_decode_call = msgspec.msgpack.Decoder(Call).decode
_decode_wake_up = msgspec.msgpack.Decoder(WakeUpCall).decode


async def call(exchange: Exchange) -> None:
    """Run one operation."""
    given = _decoded(_decode_call, await exchange.body())
    operation = remote.OPERATIONS.get(given.operation)
    if operation is None:
        raise _other_version()
    _check_version(given.version)
    check_call(exchange, given)
    arguments = checked_arguments(
        operation, _decoded(operation.arguments.decode, bytes(given.arguments))
    )
    try:
        result = await _run_by_our_clock(exchange, given, operation, arguments)
    except StoreUnavailable as error:
        kind = "busy" if isinstance(error, StoreBusy) else "unavailable"
        raise Problem(503, kind, one_line(error)) from error
    except StoreError as error:
        kind = "misconfigured" if type(error).__name__ == "SchemaError" else "store-error"
        raise Problem(500, kind, one_line(error)) from error
    await exchange.send_bytes(remote.encode(result), MSGPACK.content_type)


async def wait(exchange: Exchange) -> None:
    """Wait for the next wake-up of a queue."""
    given = _decoded(_decode_wake_up, await exchange.body())
    _check_version(given.version)
    polls = exchange.grant.allows(Scope.POLL, given.queue)
    if not polls:  # then the client may still wait for responses to what it has offered
        exchange.check(Scope.OFFER, given.queue)
    if exchange.service.is_own(given.queue):
        raise Problem(403, "forbidden", "this queue belongs to the server itself")
    queue = await exchange.use(given.queue, given.type_name)
    if not queue.exists:
        wait = timedelta(seconds=max(0.0, min(given.seconds, LONGEST_WAIT)))
        rang = bool(await wait_for_queue(exchange, given.queue, given.type_name, wait))
        await exchange.send_bytes(remote.encode(WakeUp("", 0, rang)), MSGPACK.content_type)
        return
    waiter = Waiter(given.sender, answers_only=not polls)
    with queue.wake_ups.heard_by(waiter):
        found = queue.wake_ups.since(given.source, given.heard, waiter)
        if not found.rang and not found.answered:
            await _wait_for_a_ring(exchange, queue, waiter, given.seconds)
            exchange.check_token_again()
            found = queue.wake_ups.since(given.source, given.heard, waiter)
    await exchange.send_bytes(remote.encode(found), MSGPACK.content_type)


async def _wait_for_a_ring(
    exchange: Exchange, queue: ServedQueue, waiter: Waiter, seconds: float
) -> None:
    gone = asyncio.ensure_future(exchange.receive())
    gone.add_done_callback(lambda _: waiter.stop())
    try:
        with exchange.service.live.waiting(waiter, exchange.grant):
            await queue.wake_ups.wait(waiter, min(seconds, LONGEST_WAIT))
    finally:
        gone.cancel()


async def _run_by_our_clock(
    exchange: Exchange, given: Call, operation: remote.Operation, arguments: tuple[Any, ...]
) -> object:
    if believes_clients(exchange):
        return await _run(exchange, given, operation, arguments)
    now = to_millis(exchange.service.queues.settings.clock.now())
    time = client_time(operation, arguments, given.sent_at, now)
    result = await _run(exchange, given, operation, time.ours(operation, arguments))
    return time.theirs(given.operation, result)


async def _run(
    exchange: Exchange, given: Call, operation: remote.Operation, arguments: tuple[Any, ...]
) -> object:
    if not given.queue:
        return await _run_on_database(exchange, given, operation, arguments)
    if given.operation in remote.OF_DATABASE:
        raise invalid("queue", "this operation is on the whole database, so queue must be empty")
    if given.operation == "count_types":
        return await exchange.service.queues.count_types(given.queue, arguments[1])
    create = may_create(exchange, given)
    queue = await exchange.use(given.queue, given.type_name, create=create)
    store = await _store(exchange, queue, given)
    if given.operation == "open":
        return None
    arguments = _as_ours(queue, given, arguments)
    steps = partial(operation.call, attrgetter(given.operation)(store), arguments)
    if given.operation in LONG_READS:
        return await _read(exchange, queue, given, steps)
    gone = asyncio.ensure_future(exchange.receive())
    try:
        result: Any = await _in_one_try(queue, given, steps)
        if given.operation == "claim" and result:
            await asyncio.sleep(0)  # the loop may know by now that the client is gone
            if gone.done():
                leases = [each.lease for each in result]
                await queue.session.run(partial(store.give_back, leases))
                _announce(queue, store, given, EARLIEST)
    finally:
        gone.cancel()
    find_due_at = _DUE_AT.get(given.operation)
    due_at = None if find_due_at is None else find_due_at(arguments, result)
    if due_at is not None:
        _announce(queue, store, given, due_at)
    find_answered = _ANSWERED.get(given.operation)
    if find_answered is not None and (answered := find_answered(arguments, result)):
        with caused_by(given.sender):
            queue.context.announce_answered(answered, arguments[-1])
    return remote.FoundMessage.of(result) if given.operation == "read" else result


async def _in_one_try(queue: ServedQueue, given: Call, steps: Callable[[], Steps[Any]]) -> Any:
    """Run it once, because the client tries again by itself, but note whether the store answers."""
    flow = retrying(
        RetryPolicy.never(),
        steps,
        try_seconds=_seconds(given.seconds),
        consumes=given.consumes,
        contact=queue.context.contact,
    )
    return await drive_async(flow, performer_async(queue.session))


async def _read(
    exchange: Exchange, queue: ServedQueue, given: Call, steps: Callable[[], Steps[Any]]
) -> object:
    """Run an operation that only reads in its turn; see `reads.py`."""
    of = (given.operation, queue.kind)
    if given.operation == "counts" and not believes_clients(exchange):
        return await exchange.look(of, queue.count, shares=queue.exists)
    return await exchange.look(of, partial(queue.reading.run, steps, _seconds(given.seconds)))


async def _store(exchange: Exchange, queue: ServedQueue, given: Call) -> Store:
    if not believes_clients(exchange):
        return queue.context.store
    if given.operation == "open":
        return await queue.open_port_store(given.sweep_interval, history=given.history)
    return await queue.port_store(given.sweep_interval, history=given.history)


async def _run_on_database(
    exchange: Exchange, given: Call, operation: remote.Operation, arguments: tuple[Any, ...]
) -> object:
    queues = exchange.service.queues
    if given.operation == "kinds":
        return [
            f"{name}|{type_name}"
            for name, type_name in await queues.kinds()
            if exchange.grant.allows_something(name) and not exchange.service.is_own(name)
        ]
    if given.operation == "examine":
        return await examined(queues)
    table = await queues.start()
    name = given.operation.removeprefix("history.")
    if name == given.operation:
        raise invalid("queue", "queue is missing")
    steps: Callable[[], Steps[Any]] = partial(operation.call, getattr(table, name), arguments)
    if given.operation in LONG_READS:
        return await exchange.look(given.operation, partial(queues.read, steps))
    return await queues.run(steps)


def _check_version(version: int) -> None:
    if version != remote.VERSION:
        raise _other_version()


def _other_version() -> Problem:
    return Problem(
        400,
        "unknown-operation",
        "the client and the server have versions of DueQueue that do not work together",
    )


def _seconds(asked: float | None) -> float:
    """Return how long an operation may take; stopping it too soon would disturb other requests."""
    return LONGEST_CALL if asked is None else max(LEAST_SECONDS, asked)  # also if it is NaN


def _of_offers(arguments: tuple[Any, ...], outcomes: list[OfferOutcome]) -> int | None:
    pairs = zip(arguments[0], outcomes, strict=True)
    changed = [each.due_at for each, outcome in pairs if outcome is not OfferOutcome.IGNORED]
    return min(changed, default=None)


def _of_releases(arguments: tuple[Any, ...], won: set[int]) -> int | None:
    return min((each.due_at for each in arguments[0] if each.lease.id in won), default=None)


# The earliest due time that an operation has brought, if it brought any.
_DUE_AT: dict[str, Callable[[tuple[Any, ...], Any], int | None]] = {
    "offer": _of_offers,
    "release": _of_releases,
    # The leases do not say when the messages were due.
    "give_back": lambda _, won: EARLIEST if won else None,
    "reschedule": lambda arguments, found: arguments[1] if found else None,
    "burials.revive": lambda arguments, found: arguments[1] if found else None,
    "burials.revive_all": lambda arguments, done: arguments[1] if done.revived else None,
    "cron.install": lambda _, installed: installed.due_at,
}


def _of_settled(arguments: tuple[Any, ...], won: set[int]) -> list[str]:
    return [each.lease.key for each in arguments[0] if each.lease.id in won]


# The keys of the messages that an operation has answered, buried or dropped.
_ANSWERED: dict[str, Callable[[tuple[Any, ...], Any], list[str]]] = {
    "answer": _of_settled,
    "bury": _of_settled,
    "drop": lambda arguments, dropped: [arguments[0]] if dropped else [],
}


def _announce(queue: ServedQueue, store: Store, given: Call, due_at: int) -> None:
    """Wake those who wait, at this server and at others, except for the sender itself."""
    context = queue.context
    store.announce(due_at)
    with caused_by(given.sender):
        context.bell.ring(due_at)
    is_soon = context.is_soon(due_at, context.now())
    # An offer notifies other servers with its own commit.
    if context.alerts is not None and is_soon and given.operation != "offer":
        context.alerts.notify(due_at)


def _as_ours(queue: ServedQueue, given: Call, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with this server as the sender of a wake-up, not its client."""
    if given.operation in _ANSWERED:
        return *arguments[:-1], queue.context.sender()
    if given.operation != "offer":
        return arguments
    records, now, sender, hurried = arguments
    return records, now, None if sender is None else queue.context.sender(), hurried


def _decoded(decode: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return decode(data)
    except UNREADABLE as error:
        raise undecodable(error) from None


ROUTES = (
    Route(
        "POST",
        "/v1/port:call",
        call,
        "Run one operation of a store",
        body=object,
        documented=False,
    ),
    Route(
        "POST",
        "/v1/port:wait",
        wait,
        "Wait for a wake-up of a queue",
        body=object,
        documented=False,
    ),
)

"""`:settle`: acks, extensions, releases and burials of deliveries, many in one request."""

from collections.abc import Iterable
from functools import partial

from duequeue.drive.actions import Flow
from duequeue.errors import StoreUnavailable
from duequeue.flows.arguments import delay_millis, keep_millis
from duequeue.flows.context import Context
from duequeue.flows.lease_tokens import HeldLease, held_lease
from duequeue.flows.responding import encoded_response, store_answers
from duequeue.flows.settling import storable, store_burials
from duequeue.instants import positive_millis
from duequeue.port import store
from duequeue.server import wire
from duequeue.server.exchange import Exchange
from duequeue.server.parameters import HOT_TYPES, QUEUE, TYPE
from duequeue.server.problems import invalid
from duequeue.server.queues import OpenQueue
from duequeue.server.routing import Route
from duequeue.server.times import read_duration
from duequeue.server.tokens import Scope


async def post(exchange: Exchange) -> None:
    """Settle deliveries."""
    asked: wire.Settlement = await exchange.decoded(wire.Settlement)
    queue = await exchange.queue()
    settled = await settle(exchange, queue, asked)
    await exchange.answer(wire.Settled(settled), form=exchange.answer_format)


async def settle(
    exchange: Exchange, queue: OpenQueue, asked: wire.Settlement
) -> dict[str, wire.Verdict]:
    """Settle deliveries, and return for each token whether its lease still held."""
    named = _named(asked)
    _check_tokens(named, exchange.service.limits.batch_messages)
    if not named:
        return {}
    held = {token: _held(token, queue.kind, place) for token, place in named}
    spans = {
        each.token: positive_millis(read_duration(each.lease, "lease"), "lease")
        for each in asked.extend
        if each.lease is not None
    }
    delays = {
        each.token: delay_millis(read_duration(each.delay, "delay")) for each in asked.release
    }
    won: set[str] = set()
    context = queue.context
    answers = {each.token: _answer(context, held[each.token], each) for each in asked.response}
    if asked.ack:
        flow = _ack(context, [held[token].lease for token in asked.ack])
        won |= _winners(asked.ack, held, await queue.drive(flow))
    if asked.response:
        flow = store_answers(context, list(answers.values()), context.now())
        won |= _winners(answers, held, await queue.drive(flow))
    if asked.release:
        flow = _release(context, {held[token].lease: delay for token, delay in delays.items()})
        won |= _winners(delays, held, await queue.drive(flow))
    if asked.bury:
        burials = [store.Burial(*held[each.token], storable(each.reason)) for each in asked.bury]
        now = context.now()
        flow = store_burials(context, burials, now)
        won |= _winners((each.token for each in asked.bury), held, await queue.drive(flow))
    by_span: dict[int, list[str]] = {}
    for each in asked.extend:
        by_span.setdefault(spans.get(each.token, context.lease), []).append(each.token)
    for span, tokens in by_span.items():
        flow = _extend(context, [held[token].lease for token in tokens], span)
        won |= _winners(tokens, held, await queue.drive(flow))
    _count(exchange, queue, asked, won)
    return {token: "won" if token in won else "lost" for token in held}


def _named(asked: wire.Settlement) -> list[tuple[str, str]]:
    """Return each token, and its place in the request."""
    named = [(token, f"ack[{number}]") for number, token in enumerate(asked.ack)]
    for name in ("response", "extend", "release", "bury"):
        several = enumerate(getattr(asked, name))
        named += [(each.token, f"{name}[{number}].token") for number, each in several]
    return named


def _check_tokens(named: list[tuple[str, str]], most: int) -> None:
    if len(named) > most:
        raise invalid("token", f"one request may settle at most {most} deliveries")
    seen = set[str]()
    for token, place in named:
        if token in seen:
            raise invalid(place, "each token may be named only once in a request")
        seen.add(token)


def _held(token: str, kind: str, place: str) -> HeldLease:
    try:
        return held_lease(token, kind, place)
    except ValueError as error:
        raise invalid(place, str(error)) from None


def _winners(tokens: Iterable[str], held: dict[str, HeldLease], won: set[int]) -> set[str]:
    return {token for token in tokens if held[token].lease.id in won}


def _answer(context: Context[bytes], held: HeldLease, asked: wire.Reply) -> store.Answer:
    keep = context.keep if asked.keep is None else keep_millis(read_duration(asked.keep, "keep"))
    payload = encoded_response(context, held.lease.key, asked.value)
    return store.Answer(held.lease, payload, context.now() + keep)


def _ack(context: Context[bytes], leases: list[store.Lease]) -> Flow[set[int]]:
    return context.consume(partial(context.store.ack, leases, context.now()))


def _release(context: Context[bytes], delays: dict[store.Lease, int]) -> Flow[set[int]]:
    won, now = yield from context.consume_from_now(
        lambda now: context.store.release(
            [store.Release(lease, now + delay) for lease, delay in delays.items()]
        )
    )
    if won:
        yield from context.announce(now + min(delays.values()), now)
    return won


def _extend(context: Context[bytes], leases: list[store.Lease], millis: int) -> Flow[set[int]]:
    won, _ = yield from context.consume_from_now(
        lambda now: _extend_unless_locked(context, leases, now + millis)
    )
    return won


def _extend_unless_locked(
    context: Context[bytes], leases: list[store.Lease], until: int
) -> store.Steps[set[int]]:
    won, busy = yield from context.store.extend(leases, until)
    if busy:
        raise StoreUnavailable("another transaction has locked a message whose lease is extended")
    return won


def _count(exchange: Exchange, queue: OpenQueue, asked: wire.Settlement, won: set[str]) -> None:
    meter = exchange.service.meter
    for outcome, tokens in (
        ("acked", [*asked.ack, *(each.token for each in asked.response)]),
        ("released", [each.token for each in asked.release]),
        ("buried", [each.token for each in asked.bury]),
    ):
        meter.settled(queue.name, outcome, sum(token in won for token in tokens))
        meter.settled(queue.name, "lost", sum(token not in won for token in tokens))


ROUTES = (
    Route(
        "POST",
        "/v1/queues/{queue}:settle",
        post,
        "Ack, extend, release and bury deliveries",
        Scope.SETTLE,
        body=wire.Settlement,
        answer=wire.Settled,
        parameters=(QUEUE, TYPE),
        body_types=HOT_TYPES,
        answer_types=HOT_TYPES,
    ),
)

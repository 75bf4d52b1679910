"""`:settle`: acks, extensions, releases and burials of deliveries, many in one request."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from duequeue.drive.actions import Flow
from duequeue.errors import InvalidArgument, StoreUnavailable
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

T = TypeVar("T")


async def post(exchange: Exchange) -> None:
    """Settle deliveries."""
    asked: wire.Settlement = await exchange.decoded(wire.Settlement)
    queue = await exchange.queue()
    settled = await settle(exchange, queue, asked)
    await exchange.answer(wire.Settled(settled), form=exchange.answer_format)


async def settle(
    exchange: Exchange, queue: OpenQueue, asked: wire.Settlement, place: str = ""
) -> dict[str, wire.Verdict]:
    """Settle deliveries, and return for each token whether its lease still held.

    An error names the place of a token, which begins with `place`.
    """
    named = _named(asked, place)
    _check_tokens(named, exchange.service.limits.batch_messages)
    if not named:
        return {}
    held = {token: _held(token, queue.kind, place) for token, place in named}
    spans = {
        each.token: positive_millis(read_duration(each.lease, "lease"), "lease")
        for each in asked.extend
        if each.lease is not None
    }
    context = queue.context
    acks = {token: held[token].lease for token in asked.ack}
    answers = {each.token: _answer(context, held[each.token], each) for each in asked.response}
    delays = {
        each.token: (held[each.token].lease, delay_millis(read_duration(each.delay, "delay")))
        for each in asked.release
    }
    burials = {
        each.token: store.Burial(*held[each.token], storable(each.reason)) for each in asked.bury
    }
    won = await _winners(queue, held, acks, partial(_ack, context))
    won |= await _winners(queue, held, answers, partial(_store_answers, context))
    won |= await _winners(queue, held, delays, partial(_release, context))
    won |= await _winners(queue, held, burials, partial(_bury, context))
    by_span: dict[int, dict[str, store.Lease]] = {}
    for each in asked.extend:
        tokens = by_span.setdefault(spans.get(each.token, context.lease), {})
        tokens[each.token] = held[each.token].lease
    for span, extended in by_span.items():
        won |= await _winners(queue, held, extended, partial(_extend, context, span))
    return {token: "won" if token in won else "lost" for token in held}


def _named(asked: wire.Settlement, place: str) -> list[tuple[str, str]]:
    """Return each token, and its place in the request."""
    named = [(token, f"{place}ack[{number}]") for number, token in enumerate(asked.ack)]
    for name in ("response", "extend", "release", "bury"):
        several = enumerate(getattr(asked, name))
        named += [(each.token, f"{place}{name}[{number}].token") for number, each in several]
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
    except InvalidArgument as error:
        raise invalid(place, str(error)) from None


async def _winners(
    queue: OpenQueue,
    held: Mapping[str, HeldLease],
    items: Mapping[str, T],
    flow_for: Callable[[list[T]], Flow[set[int]]],
) -> set[str]:
    """Settle the items of tokens, and return the tokens that won.

    A flow returns the ids of messages, so it is given at most one of the leases of each.
    """
    won = set[str]()
    while items:
        chosen = {held[token].lease.id: token for token in items}
        ids = await queue.drive(flow_for([items[token] for token in chosen.values()]))
        won |= {token for number, token in chosen.items() if number in ids}
        items = {token: items[token] for token in items.keys() - set(chosen.values())}
    return won


def _answer(context: Context[bytes], held: HeldLease, asked: wire.Reply) -> store.Answer:
    keep = context.keep if asked.keep is None else keep_millis(read_duration(asked.keep, "keep"))
    payload = encoded_response(context, held.lease.key, asked.value)
    return store.Answer(held.lease, payload, context.now() + keep)


def _ack(context: Context[bytes], leases: list[store.Lease]) -> Flow[set[int]]:
    return context.consume(partial(context.store.ack, leases, context.now()))


def _store_answers(context: Context[bytes], answers: list[store.Answer]) -> Flow[set[int]]:
    return store_answers(context, answers, context.now())


def _bury(context: Context[bytes], burials: list[store.Burial]) -> Flow[set[int]]:
    return store_burials(context, burials, context.now())


def _release(context: Context[bytes], delays: list[tuple[store.Lease, int]]) -> Flow[set[int]]:
    won, now = yield from context.consume_from_now(
        lambda now: context.store.release(
            [store.Release(lease, now + delay) for lease, delay in delays]
        )
    )
    if won:
        yield from context.announce(now + min(delay for _, delay in delays), now)
    return won


def _extend(context: Context[bytes], millis: int, leases: list[store.Lease]) -> Flow[set[int]]:
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

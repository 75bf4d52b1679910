"""`:settle`: acks, extensions, releases and burials of deliveries, many in one request."""

from datetime import timedelta

from duequeue.errors import InvalidArgument
from duequeue.flows.arguments import delay_millis
from duequeue.flows.context import Context
from duequeue.flows.lease_tokens import HeldLease, held_lease
from duequeue.flows.responding import answer_of
from duequeue.flows.settling import ToSettle, burial_of, settle_many
from duequeue.instants import positive_millis
from duequeue.server import wire
from duequeue.server.exchange import Exchange
from duequeue.server.parameters import HOT_TYPES, QUEUE, TYPE
from duequeue.server.problems import invalid
from duequeue.server.queues import ServedQueue
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
    exchange: Exchange, queue: ServedQueue, asked: wire.Settlement, place: str = ""
) -> dict[str, wire.Verdict]:
    """Settle deliveries, and return for each token whether its lease still held.

    An error names the place of a token, which begins with `place`.
    """
    named = _named(asked, place)
    _check_tokens(named, exchange.service.limits.batch_messages)
    if not named:
        return {}
    held = {token: _held(token, queue.kind, place) for token, place in named}
    _check_leases(named, held)
    context = queue.context
    to_settle = ToSettle(
        acks=[held[token].lease for token in asked.ack],
        answers=[
            answer_of(context, held[each.token].lease, each.value, _keep(each))
            for each in asked.response
        ],
        releases=[
            (held[each.token].lease, delay_millis(read_duration(each.delay, "delay")))
            for each in asked.release
        ],
        burials=[burial_of(context, *held[each.token], each.reason) for each in asked.bury],
        extensions=[(held[each.token].lease, _span(context, each.lease)) for each in asked.extend],
    )
    won = set(await queue.drive(settle_many(context, to_settle)))
    return {token: "won" if each.lease in won else "lost" for token, each in held.items()}


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


def _check_leases(named: list[tuple[str, str]], held: dict[str, HeldLease]) -> None:
    """Refuse a lease that two tokens name, because its verdict would count for both."""
    seen = set[object]()
    for token, place in named:
        lease = held[token].lease
        if lease in seen:
            raise invalid(place, "each lease may be named only once in a request")
        seen.add(lease)


def _held(token: str, kind: str, place: str) -> HeldLease:
    try:
        return held_lease(token, kind, place)
    except InvalidArgument as error:
        raise invalid(place, str(error)) from None


def _keep(asked: wire.Reply) -> timedelta | None:
    return None if asked.keep is None else read_duration(asked.keep, "keep")


def _span(context: Context[bytes], lease: str | float | None) -> int:
    if lease is None:
        return context.lease
    return positive_millis(read_duration(lease, "lease"), "lease")


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

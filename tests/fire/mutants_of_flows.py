"""Bugs of the flows, of consumers and of crons, which are the same on every store."""

import os
from collections.abc import Callable, Mapping, Sequence
from threading import Timer
from typing import Any

from duequeue import OfferOutcome, Queue
from duequeue.consumer import keeper, settling, stopping
from duequeue.consumer.consumer import Consumer
from duequeue.cron import upkeep
from duequeue.delivery import Delivery
from duequeue.flows import inspecting, offering, polling
from duequeue.flows import settling as settling_flows
from duequeue.schedules.misfire import Misfire
from duequeue.schedules.tick import tick_key

_ack = settling_flows.ack
_ack_leases = settling_flows._ack  # noqa: SLF001 - a bug is inside
_release = settling_flows._release  # noqa: SLF001 - likewise
_claim = polling._claim  # noqa: SLF001 - likewise
_handle = Consumer._handle  # noqa: SLF001 - likewise
_offer = Queue.offer
_deliveries_ack = Delivery.ack


def _ack_says_yes(context: Any, message: Any) -> Any:
    yield from _ack(context, message)
    return True


def _ack_the_first(context: Any, leases: Sequence[Any]) -> Any:
    yield from _ack_leases(context, list(leases[:1]))
    return len(leases)


def _extend_nothing(context: Any, message: Any, millis: int) -> Any:
    yield from ()
    message.extended_to(context.now() + millis)
    return True


def _release_at_once(context: Any, message: Any, delay: int) -> Any:
    return _release(context, message, 0)


def _drop_nothing(context: Any, key: str) -> Any:
    yield from ()
    return True


def _forgetful() -> None:
    """Lose what the second claim of the process finds, as if its reply had been lost."""
    claims = 0

    def claim(context: Any, limit: int, token: int) -> Any:
        nonlocal claims
        claims += 1
        if claims == 2:
            yield from _claim(context, limit, token)
        return (yield from _claim(context, limit, token))

    setattr(polling, "_claim", claim)  # noqa: B010 - mypy refuses the plain assignment


def _offer_again() -> None:
    """Repeat an offer once its message is acked, as a retry that comes late would."""
    offers: dict[str, Callable[[], Any]] = {}

    def offer(queue: Any, key: str, *arguments: Any, **options: Any) -> Any:
        offers[key] = lambda: _offer(queue, key, *arguments, **options)
        return offers[key]()

    def ack(delivery: Any) -> bool:
        won = _deliveries_ack(delivery)
        if won and delivery.key in offers:
            offers.pop(delivery.key)()
        return won

    setattr(Queue, "offer", offer)  # noqa: B010 - mypy refuses the plain assignment
    setattr(Delivery, "ack", ack)  # noqa: B010 - likewise


def _offer_later(queue: Any, *arguments: Any, **options: Any) -> OfferOutcome:
    later = Timer(600, _offer, (queue, *arguments), options)  # its process will be killed by then
    later.daemon = True
    later.start()
    return OfferOutcome.CREATED


def _handle_too_late(consumer: Any, delivery: Any, *report: Any) -> Any:
    delivery.ack()
    return _handle(consumer, delivery, *report)


def _extend_no_leases(*_: Any) -> Any:
    yield from ()


def _key_of_this_node(prefix: str, config_hash: Any, at: Any) -> str:
    return tick_key(f"{prefix}/{os.getpid()}", config_hash, at)


FLOW_CHANGES: Mapping[str, Callable[[], None]] = {
    "ack always says yes": lambda: setattr(settling_flows, "ack", _ack_says_yes),
    "ack_many acks one": lambda: setattr(settling_flows, "_ack", _ack_the_first),
    "extend does nothing": lambda: setattr(settling_flows, "_extend", _extend_nothing),
    "release forgets the delay": lambda: setattr(settling_flows, "_release", _release_at_once),
    "drop does nothing": lambda: setattr(inspecting, "drop", _drop_nothing),
    "an offer that must not replace does": lambda: setattr(
        offering, "checked_flag", lambda *_: True
    ),
    "poll forgets what it claimed": _forgetful,
    "offer is made again after the ack": _offer_again,
    "offer answers before the commit": lambda: setattr(Queue, "offer", _offer_later),
    "consumer acks before it handles": lambda: setattr(Consumer, "_handle", _handle_too_late),
    "consumer does not extend": lambda: setattr(keeper, "extend_leases", _extend_no_leases),
    "giving back counts": lambda: setattr(stopping, "give_back", settling.abandon),
    "each node has its own ticks": lambda: setattr(upkeep, "tick_key", _key_of_this_node),
    "missed ticks are skipped": lambda: setattr(Misfire, "chosen", lambda *_: []),
}

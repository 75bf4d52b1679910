"""What a face refuses never reaches its store, so the checks themselves need only one store."""

from collections.abc import Callable
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from duequeue import Message
from duequeue.contract.faces import DeliveryFace, QueueFace
from duequeue.contract.fixtures import Consume
from duequeue.contract.ledger import OpenCounted
from duequeue.contract.phrases import HOUR, SECOND, claim
from duequeue.contract.test_bad_input import (
    NAIVE,
    USES_OF_A_DUE_TIME,
    USES_OF_A_KEY,
    USES_OF_A_LIMIT,
)
from duequeue.contract.test_cron_bad_input import BAD_CALLS, PREFIX_CALLS

wrong: Any = object()

OTHER_CALLS: list[Callable[[QueueFace], object]] = [
    lambda queue: queue.offer("a", 1, replace=wrong),
    lambda queue: queue.offer("a", 1, headers=wrong),
    lambda queue: queue.offer("a", 1, HOUR, expires=SECOND),
    lambda queue: queue.offer("a", wrong),
    lambda queue: queue.offer_batch([Message("a", 1), Message("b", wrong)]),
    lambda queue: queue.poll(-SECOND),
    lambda queue: queue.poll_many(1, -SECOND),
    lambda queue: queue.ack_many([wrong]),
    lambda queue: queue.purge_buried(NAIVE),
    lambda queue: queue.revive_all(wrong),
    lambda queue: queue.list(prefix=wrong),
    lambda queue: queue.list(limit=0),
    lambda queue: queue.forecast(bucket=-HOUR),
    lambda queue: queue.response("", 0),
    lambda queue: queue.response("a", -1),
    lambda queue: queue.forget_response(""),
    lambda queue: queue.cron.install_periodic_tick("a", HOUR, 1, headers=wrong),
]

CALLS_OF_A_DELIVERY: list[Callable[[DeliveryFace], object]] = [
    lambda delivery: delivery.ack(1, keep=timedelta(0)),
    lambda delivery: delivery.ack(wrong),
    lambda delivery: delivery.extend(timedelta(0)),
    lambda delivery: delivery.release(-SECOND),
    lambda delivery: delivery.bury(wrong),
]

OPTIONS_OF_A_CONSUMER: list[dict[str, Any]] = [
    {"concurrency": 0},
    {"batch": 0},
    {"max_attempts": 0},
    {"timeout": timedelta(0)},
    {"lease": timedelta(0)},
    {"retry_on": wrong},
    {"respond": wrong},
]


def test_a_refused_call_never_reaches_the_store(
    open_counted: OpenCounted, consume: Consume
) -> None:
    queue, ledger = open_counted()
    queue.offer("a", 1)
    delivery = claim(queue)
    before = dict(ledger)
    for use, bad in product([*USES_OF_A_KEY, *USES_OF_A_DUE_TIME, *USES_OF_A_LIMIT], ["", wrong]):
        with pytest.raises((TypeError, ValueError)):
            use(queue, bad)
    for on_prefix, prefix in product(PREFIX_CALLS.values(), ["", wrong]):
        with pytest.raises((TypeError, ValueError)):
            on_prefix(queue, prefix)
    for call in [*OTHER_CALLS, *(call for _, _, call in BAD_CALLS.values())]:
        with pytest.raises((TypeError, ValueError)):
            call(queue)
    for settle in CALLS_OF_A_DELIVERY:
        with pytest.raises((TypeError, ValueError)):
            settle(delivery)
    for options in OPTIONS_OF_A_CONSUMER:
        with pytest.raises((TypeError, ValueError)):
            consume(queue, **options)
    assert dict(ledger) == before
    assert delivery.ack()
    assert (queue.buried(1), queue.cron.list()) == ([], [])
    assert sum(ledger.values()) == sum(before.values()) + 3

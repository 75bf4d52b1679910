"""What the standard library refuses is refused as an argument too, with its name."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from itertools import count
from typing import Any

import pytest

from duequeue import Backoff, InvalidArgument, InvalidType, ManualClock, Queue, queues
from duequeue.callbacks.endpoint import read_rate
from duequeue.callbacks.guard import Guard
from duequeue.callbacks.pushing import PushSettings
from duequeue.callbacks.rate import RateLimit
from duequeue.durations import parse_duration

HALF = "\ud800"
NOTHING: Any = None
SOON: Any = "soon"
AT_THE_END = ManualClock(datetime.max.replace(tzinfo=UTC))
FAR_EAST = timezone(timedelta(hours=23))


def offering(payload: Any, codec: Any = None) -> object:
    with Queue[Any].open("memory:refusals", "orders", codec=codec) as queue:
        return queue.offer("a", payload)


def offering_batch(messages: Any) -> object:
    with Queue[Any].open("memory:refusals", "orders") as queue:
        return queue.offer_batch(messages)


@pytest.mark.parametrize(
    ("call", "kind", "argument"),
    [
        (lambda: offering({"a": HALF}), InvalidArgument, "payload"),
        (lambda: offering({HALF: 1}), InvalidArgument, "payload"),
        (lambda: offering(HALF, str), InvalidArgument, "payload"),
        (lambda: offering_batch(5), InvalidType, "messages"),
        (lambda: queues("http://[::1"), InvalidArgument, "url"),
        (lambda: queues(f"http://{HALF}"), InvalidArgument, "url"),
        (lambda: queues("http://a..b"), InvalidArgument, "url"),
        (lambda: ManualClock(datetime.min.replace(tzinfo=FAR_EAST)), InvalidArgument, "start"),
        (
            lambda: ManualClock(datetime.max.replace(tzinfo=UTC)).advance(timedelta(1)),
            InvalidArgument,
            "by",
        ),
        (lambda: Backoff.parse(NOTHING), InvalidType, "backoff"),
        (lambda: parse_duration(NOTHING), InvalidType, "duration"),
        (lambda: read_rate(NOTHING), InvalidType, "rate"),
        (lambda: RateLimit(SOON), InvalidType, "per_second"),
        (lambda: RateLimit(1, SOON), InvalidType, "burst"),
        (lambda: PushSettings(calls=SOON), InvalidType, "calls"),
        (lambda: PushSettings(grace=SOON), InvalidType, "grace"),
        (lambda: Guard(allow=5), InvalidType, "allow"),  # type: ignore[arg-type]
    ],
    ids=count(),
)
def test_a_refusal_names_the_argument(
    call: Callable[[], object], kind: type[InvalidArgument], argument: str
) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert raised.value.argument == argument

"""A walk that does the same to two stores and wants the same from both."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from duequeue import BuriedMessage, ManualClock, Message, UndecodablePayload
from duequeue.contract.faces import DeliveryFace, QueueFace
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import PickyCodec
from duequeue.port.fencing import losses_of

KEYS = ["a", "b", "c", "d", "e"]
LEASES = [timedelta(seconds=10), timedelta(seconds=4)]
KEEPS_HISTORY = [True, False]
SWEEP = timedelta(hours=1)  # so rare that no regular scan makes up for a lost place in due order

Pair = tuple[QueueFace, QueueFace]
DeliveryPair = tuple[DeliveryFace, DeliveryFace]
OpenPair = Callable[..., Pair]

keys = st.sampled_from(KEYS)
payloads = st.sampled_from(["x", "y", "rotten"])
spans = st.sampled_from([0, 1, 1.5, 4_999, 5_000, 10_000, 15_000]).map(
    lambda millis: timedelta(milliseconds=millis)
)
offsets = spans | spans.map(lambda span: -span)
headers = st.sampled_from([None, {"trace": "1"}, {"trace": "2"}])


def expiring(message: Message[str], lasts: timedelta | None) -> Message[str]:
    """Return a message that expires some time after it is due."""
    assert isinstance(message.due, timedelta)
    return replace(message, expires=None if lasts is None else message.due + lasts)


lasting = st.none() | st.sampled_from([1, 5_000, 10_000]).map(
    lambda millis: timedelta(milliseconds=millis)
)
messages = st.builds(
    expiring, st.builds(Message, keys, payloads, offsets, st.booleans(), headers), lasting
)

SETTLEMENTS: dict[str, Callable[[DeliveryFace, timedelta], bool]] = {
    "ack": lambda delivery, _: delivery.ack(),
    "extend": lambda delivery, span: delivery.extend(span or None),
    "release": lambda delivery, span: delivery.release(span),
    "bury": lambda delivery, span: delivery.bury(f"after {span}"),
}


class Walk(RuleBasedStateMachine):
    """Two consumers on one clock, each of them on the store under test and on another."""

    held = Bundle("held")

    def __init__(self, open_pair: OpenPair) -> None:
        super().__init__()
        self.open_pair = open_pair
        self.clock = ManualClock(START)
        self.instants = [START]
        self.opened = ExitStack()

    @initialize(max_attempts=st.sampled_from([None, 1, 2]))
    def open(self, max_attempts: int | None) -> None:
        self.pair, self.idle = (
            self.open_pair(
                clock=self.clock,
                lease=lease,
                poll_interval=SWEEP,
                max_attempts=max_attempts,
                codec=PickyCodec(),
                history=history,
            )
            for lease, history in zip(LEASES, KEEPS_HISTORY, strict=True)
        )
        for queue in (*self.pair, *self.idle):
            self.opened.callback(queue.close)

    @rule()
    def the_other_consumer_takes_over(self) -> None:
        self.pair, self.idle = self.idle, self.pair

    @rule(span=spans)
    def time_passes(self, span: timedelta) -> None:
        self.clock.advance(span)
        self.instants = [*self.instants[-4:], self.clock.now()]

    @rule(span=spans)
    def the_clock_is_set_back(self, span: timedelta) -> None:
        self.clock.advance(-span)

    @rule(message=messages, origin=st.integers(0, 4))
    def offer(self, message: Message[str], origin: int) -> None:
        # Instants seen before come again, or an offer would hardly ever equal what is stored.
        assert isinstance(message.due, timedelta)
        due = self.instants[origin % len(self.instants)] + message.due
        assert not isinstance(message.expires, datetime)
        expires = None if message.expires is None else due + (message.expires - message.due)
        self.both(
            lambda queue: queue.offer(
                message.key,
                message.payload,
                due,
                replace=message.replace,
                headers=message.headers,
                expires=expires,
            )
        )

    @rule(batch=st.lists(messages, max_size=8))
    def offer_batch(self, batch: list[Message[str]]) -> None:
        self.both(lambda queue: queue.offer_batch(batch))

    @rule(target=held, limit=st.integers(-1, 4))
    def poll(self, limit: int) -> Any:
        subject, reference = (queue.try_poll_many(limit) for queue in self.pair)
        assert described(subject) == described(reference)
        return multiple(*zip(subject, reference, strict=True))

    @rule(pair=held, how=st.sampled_from(sorted(SETTLEMENTS)), span=spans)
    def settle(self, pair: DeliveryPair, how: str, span: timedelta) -> None:
        subject, reference = (SETTLEMENTS[how](delivery, span) for delivery in pair)
        assert subject == reference

    @rule(pairs=st.lists(consumes(held), max_size=4))
    def ack_many(self, pairs: list[DeliveryPair]) -> None:
        subject, reference = (
            queue.ack_many([pair[side] for pair in pairs]) for side, queue in enumerate(self.pair)
        )
        assert subject == reference

    @rule(key=keys)
    def drop(self, key: str) -> None:
        self.both(lambda queue: queue.drop(key))

    @rule()
    def drop_all(self) -> None:
        self.both(lambda queue: queue.drop_all(queue.name))

    @rule(key=keys, origin=st.integers(0, 4), offset=offsets)
    def reschedule(self, key: str, origin: int, offset: timedelta) -> None:
        due = self.instants[origin % len(self.instants)] + offset
        self.both(lambda queue: moved(partial(queue.reschedule, key, due)))

    @rule(key=keys)
    def run_now(self, key: str) -> None:
        self.both(lambda queue: moved(partial(queue.run_now, key)))

    @rule(
        state=st.none() | st.sampled_from(["due", "leased", "future"]),
        prefix=st.none() | keys,
        span=st.tuples(st.none() | offsets, st.none() | offsets),
        limit=st.integers(1, 6),
    )
    def list_pages(
        self,
        state: str | None,
        prefix: str | None,
        span: tuple[timedelta | None, timedelta | None],
        limit: int,
    ) -> None:
        due_from, due_to = (None if each is None else self.clock.now() + each for each in span)
        wanted = {"state": state, "prefix": prefix, "due_from": due_from, "due_to": due_to}
        self.both(lambda queue: pages(queue, limit=limit, **wanted))

    @rule(index=st.integers(0, 9), due=st.none() | offsets)
    def revive_one(self, index: int, due: timedelta | None) -> None:
        self.both(lambda queue: revive_one(queue, index, due))

    @rule(index=st.integers(0, 9))
    def delete_buried(self, index: int) -> None:
        self.both(lambda queue: [queue.delete_buried(each.id) for each in nth(queue, index)])

    @rule(reason=st.none() | st.sampled_from(["after 0:00:0", "max_attempts"]), due=offsets)
    def revive_all(self, reason: str | None, due: timedelta) -> None:
        self.both(lambda queue: queue.revive_all(reason, due))

    @rule(key=keys, due=st.none() | offsets)
    def revive(self, key: str, due: timedelta | None) -> None:
        self.both(lambda queue: queue.revive(key, due))

    @rule(ago=spans)
    def purge_buried(self, ago: timedelta) -> None:
        self.both(lambda queue: queue.purge_buried(self.clock.now() - ago))

    @invariant()
    def both_look_the_same(self) -> None:
        self.both(lambda queue: queue.stats())
        self.both(lambda queue: [replace(each, id="") for each in queue.buried(100)])
        self.both(lambda queue: [read(queue, key) for key in KEYS])
        self.both(history_of)

    @invariant()
    def both_forecast_the_same(self) -> None:
        if not self.pair[1].stats().leased:  # after a clock was set back, those may count or not
            self.both(lambda queue: queue.forecast())

    @invariant()
    def the_numbers_add_up(self) -> None:
        stats = self.pair[1].stats()
        assert stats.total == stats.due + stats.leased + stats.future
        assert (stats.oldest_due_at is None) == (stats.due == 0)
        assert (stats.next_due_at is None) == (stats.future == 0)

    def both(self, call: Callable[[QueueFace], object]) -> None:
        """Make the call on both stores, which must answer the same."""
        subject, reference = (call(queue) for queue in self.pair)
        assert subject == reference

    def teardown(self) -> None:
        self.opened.close()


def moved(move: Callable[[], bool]) -> object:
    try:
        return move()
    except ValueError as refusal:  # it expires before that
        return str(refusal)


def read(queue: QueueFace, key: str) -> object:
    try:
        return queue.read(key)
    except UndecodablePayload as refusal:
        return str(refusal)


def pages(queue: QueueFace, **wanted: Any) -> list[object]:
    """Everything listed, page by page; a cursor is another one on each store."""
    found: list[object] = []
    cursor = None
    while True:
        page = queue.list(after=cursor, **wanted)
        found.append(page.messages)
        cursor = page.next
        if cursor is None:
            return found


def nth(queue: QueueFace, index: int) -> list[BuriedMessage[Any]]:
    """One of the burials, and none if there are none."""
    found = queue.buried(100)
    return found[index % len(found) :][:1] if found else []


def revive_one(queue: QueueFace, index: int, due: timedelta | None) -> list[bool]:
    return [queue.revive(each.key, due, each.id) for each in nth(queue, index)]


def history_of(queue: QueueFace) -> list[tuple[object, ...]]:
    """What was settled; whatever one call settled comes in no order."""
    return sorted(
        (one.settled_at, one.key, one.outcome.value, one.due_at, str(one.lateness), one.attempts)
        for one in queue.history(1000)
    )


def described(deliveries: Sequence[DeliveryFace]) -> list[tuple[object, ...]]:
    """Everything that two deliveries of the same message have in common."""
    return [
        (
            one.key,
            one.payload,
            one.due_at,
            one.attempt,
            losses_of(one.lease.token),
            one.delivered_at,
            one.lease_until,
            one.headers,
            one.expires_at,
        )
        for one in deliveries
    ]

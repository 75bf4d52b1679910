"""A message wakes one of the processes that wait for it, and a lost wake-up is made up for."""

import gc
from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from queue import SimpleQueue
from typing import Any
from weakref import ref

import pytest

from duequeue import Message
from duequeue.backends import backend_for
from duequeue.contract.faces import QueueFace, SyncFace
from duequeue.contract.phrases import DAY, MINUTE, PATIENCE, SECOND, claim, in_background
from duequeue.contract.stage import until
from duequeue.port.alerts import Alert
from duequeue.process.line import Line
from duequeue.stores.mailbox import Mailbox, Wire
from duequeue.stores.redis.connections.alerts import IN_OUR_PLACE, ListenersWire, RedisMailbox
from duequeue.stores.redis_client.nodes import Connection
from duequeue.stores.redis_client.settings import RedisSettings
from tests.fixtures.redis_server import RedisServer
from tests.race.consumer_parts import offer
from tests.race.crew import Hand
from tests.redis.waiting import KIND, LISTENERS, offer_in_silence, poll_once


@pytest.fixture
def hand() -> Iterator[Hand]:
    """Another process."""
    hand = Hand()
    yield hand
    hand.end()


@pytest.fixture
def client(redis_server: RedisServer, redis_url: str) -> Iterator[Any]:
    with redis_server.client(int(redis_url.rpartition("/")[2])) as client:
        yield client


@pytest.fixture
def patient_queue(redis_url: str) -> Iterator[QueueFace]:
    """A queue whose regular look would come far too late for its test, by the machine's clock."""
    with SyncFace().open(redis_url, "orders", poll_interval=10 * MINUTE) as queue:
        yield queue


def offered_elsewhere(hand: Hand, url: str, key: str) -> None:
    hand.start(partial(offer, url, key))
    assert hand.outcome().error is None


def test_who_waits_is_entered_and_who_found_something_is_not(
    patient_queue: QueueFace, redis_url: str, hand: Hand, client: Any
) -> None:
    polling = in_background(patient_queue.poll)
    until(lambda: client.scard(LISTENERS) == 1)
    offered_elsewhere(hand, redis_url, "a")
    delivery = polling.result(PATIENCE)
    assert delivery is not None
    assert delivery.ack()
    assert client.scard(LISTENERS) == 0


def test_a_message_wakes_one_process_and_one_that_is_due_later_leaves_it_waiting(
    redis_url: str, client: Any
) -> None:
    hands = [Hand() for _ in range(3)]
    try:
        for each in hands:
            each.start(partial(poll_once, redis_url))
        until(lambda: client.scard(LISTENERS) == 3)
        with SyncFace().open(redis_url, "orders") as queue:
            queue.offer("soon", 1, 50 * SECOND)
            assert client.scard(LISTENERS) == 3
            assert queue.drop("soon")
            for number, _ in enumerate(hands):
                queue.offer(str(number), 1)
                until(lambda: queue.stats().total == 0)
                assert client.scard(LISTENERS) == 2 - number
        assert sorted(each.outcome().value for each in hands) == ["0", "1", "2"]
    finally:
        for each in hands:
            each.end()


def test_whoever_fills_its_limit_wakes_the_next(redis_url: str, client: Any) -> None:
    hands = [Hand() for _ in range(3)]
    try:
        for each in hands:
            each.start(partial(poll_once, redis_url))
        until(lambda: client.scard(LISTENERS) == 3)
        with SyncFace().open(redis_url, "orders") as queue:
            queue.offer_batch([Message(key, 1) for key in "abc"])  # which wakes one of them
        assert sorted(each.outcome().value for each in hands) == ["a", "b", "c"]
    finally:
        for each in hands:
            each.end()


def test_a_process_that_died_is_passed_over(
    patient_queue: QueueFace, redis_url: str, hand: Hand, client: Any
) -> None:
    polling = in_background(patient_queue.poll)
    until(lambda: client.scard(LISTENERS) == 1)
    client.sadd(LISTENERS, *(f"dq:wake:gone-{number}" for number in range(50)))
    for key in "abc":
        offered_elsewhere(hand, redis_url, key)
        delivery = polling.result(PATIENCE)
        assert delivery is not None
        assert delivery.ack()
        polling = in_background(patient_queue.poll)
        until(lambda: client.scard(LISTENERS) >= 1)
    offered_elsewhere(hand, redis_url, "last")
    assert polling.result(PATIENCE) is not None


def test_a_process_in_which_nobody_waits_any_more_passes_the_wake_up_on(
    patient_queue: QueueFace, redis_url: str, hand: Hand, client: Any
) -> None:
    polling = in_background(patient_queue.poll)
    until(lambda: client.scard(LISTENERS) == 1)
    (channel,) = client.smembers(LISTENERS)
    offered_elsewhere(hand, redis_url, "a")
    assert polling.result(PATIENCE) is not None
    hand.start(partial(poll_once, redis_url))
    until(lambda: client.scard(LISTENERS) == 1)
    offer_in_silence(redis_url, "b")
    assert client.publish(channel, f"0 {KIND}") == 1  # to this process
    assert hand.outcome().value == "b"


def test_a_look_that_finds_something_leaves_the_polls_of_its_process_waiting(
    patient_queue: QueueFace, redis_url: str, hand: Hand, client: Any
) -> None:
    polling = in_background(patient_queue.poll)
    until(lambda: client.scard(LISTENERS) == 1)
    offer_in_silence(redis_url, "a")
    assert claim(patient_queue).key == "a"
    until(lambda: client.scard(LISTENERS) == 1)
    offered_elsewhere(hand, redis_url, "b")
    delivery = polling.result(PATIENCE)
    assert delivery is not None
    assert delivery.key == "b"


def test_the_line_to_the_others_is_cut(
    patient_queue: QueueFace, redis_server: RedisServer, redis_url: str, hand: Hand, client: Any
) -> None:
    polling = in_background(patient_queue.poll)
    until(lambda: client.scard(LISTENERS) == 1)
    for key in ("while it is cut", "and again"):
        redis_server.ask("CLIENT", "KILL", "TYPE", "pubsub")
        offered_elsewhere(hand, redis_url, key)  # which wakes nobody
        delivery = polling.result(PATIENCE)  # found when the line stands again
        assert delivery is not None
        assert delivery.key == key
        assert delivery.ack()
        polling = in_background(patient_queue.poll)
        until(lambda: client.scard(LISTENERS) == 1)
    offered_elsewhere(hand, redis_url, "heard")
    delivery = polling.result(PATIENCE)
    assert delivery is not None


def test_what_is_released_revived_or_moved_wakes_somebody(
    patient_queue: QueueFace, redis_url: str, client: Any
) -> None:
    woken: SimpleQueue[str] = SimpleQueue()
    hand = Hand()
    try:
        with SyncFace().open(redis_url, "orders") as queue:
            queue.offer("a", 1)
            delivery = claim(queue)
            queue.offer("later", 1, DAY)
            for act in (
                partial(delivery.release),
                partial(queue.run_now, "later"),
            ):
                hand.start(partial(poll_once, redis_url))
                until(lambda: client.scard(LISTENERS) == 1)
                assert act()
                woken.put(hand.outcome().value)
        assert [woken.get(), woken.get()] == ["a", "later"]
    finally:
        hand.end()


def test_a_wake_up_that_is_lost_with_its_line_is_sent_again(
    redis_server: RedisServer, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duequeue.process.line.RETRY_EVERY", 0.01)
    settings, box = RedisSettings.from_url(redis_url), RedisMailbox()
    wire = ListenersWire(settings, box.waits)
    ask = partial(redis_server.ask, database=settings.database)
    box.join(KIND, print)
    try:
        for _ in range(3):
            ask("SADD", LISTENERS, "dq:wake:other")
            box.note(wire, KIND, IN_OUR_PLACE)
            until(lambda: ask("SCARD", LISTENERS) == 0)  # it was taken out
            ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    finally:
        box.leave(wire, KIND, print)


def test_a_closed_queue_leaves_no_garbage(redis_url: str) -> None:
    gc.disable()
    try:
        alerts = backend_for(redis_url).alerts(None, KIND, print)
        alerts.close()
        left = ref(alerts)
        del alerts
        assert left() is None, "a cycle holds it"
    finally:
        gc.enable()


class CountingWire(ListenersWire):
    """Counts how often it is asked where notes arrive."""

    asked = 0

    def ends(self, kinds: Iterable[str]) -> dict[Hashable, Wire[Connection]]:
        self.asked += 1
        return super().ends(kinds)


def test_a_poll_of_a_queue_that_is_heard_already_goes_through_no_others(redis_url: str) -> None:
    box = RedisMailbox()
    wire = CountingWire(RedisSettings.from_url(redis_url), box.waits)
    box.join(KIND, print)
    try:
        for _ in range(3):
            box.listen(wire, KIND)
            box.listen(wire, KIND, for_answers=True)
        assert wire.asked == 2
    finally:
        box.leave(wire, KIND, print)


class OvertakenMailbox(Mailbox[Connection]):
    """Just before a queue is noted, the line is opened for another one."""

    bells: SimpleQueue[Alert]

    def listen(
        self, wire: Wire[Connection], kind: str, *, for_answers: bool = False
    ) -> list[Line[Connection]]:
        super().listen(wire, "other|json")
        self.bells.get(timeout=PATIENCE)
        return super().listen(wire, kind, for_answers=for_answers)


class OvertakenRedisMailbox(RedisMailbox, OvertakenMailbox):
    """The line is opened at the worst instant."""


def test_a_queue_looks_again_if_the_line_was_opened_at_its_first_look(redis_url: str) -> None:
    box, bells = OvertakenRedisMailbox(), SimpleQueue[Alert]()
    box.bells = SimpleQueue()
    wire = ListenersWire(RedisSettings.from_url(redis_url), box.waits)
    box.join("other|json", box.bells.put)
    box.join(KIND, bells.put)
    try:
        box.listen(wire, KIND)
        assert bells.get(timeout=PATIENCE) is None
    finally:
        box.leave(wire, "other|json", box.bells.put)
        box.leave(wire, KIND, bells.put)

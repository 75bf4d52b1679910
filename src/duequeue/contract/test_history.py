"""`history=True`: whatever leaves the queue leaves a row, told by whoever settled it."""

from collections.abc import Iterable

import pytest

from duequeue import Bury, ManualClock, Message, Outcome, Settled
from duequeue.contract.cron_phrases import ONE, TWO, after, key_of, messages
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, Consume, OpenQueue
from duequeue.contract.phrases import (
    DAY,
    DEFAULT_LEASE,
    HOUR,
    MINUTE,
    PATIENCE,
    SECOND,
    PickyCodec,
    attempts_to_settle,
    claim,
    in_background,
)
from duequeue.contract.stage import Stage, until
from duequeue.contract.test_settle import LOSSES, Loss

ACKED, BURIED = Outcome.ACKED, Outcome.BURIED
DROPPED, REPLACED = Outcome.DROPPED, Outcome.REPLACED


@pytest.fixture
def queue(open_queue: OpenQueue) -> QueueFace:
    """A queue that keeps its history."""
    return open_queue(history=True)


def told(settled: Iterable[Settled]) -> list[tuple[str, Outcome]]:
    """What became of which key, the oldest first."""
    return [(one.key, one.outcome) for one in settled][::-1]


def test_an_ack_tells_everything(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1, START + MINUTE)
    clock.advance(MINUTE + SECOND)
    delivery = claim(queue)
    clock.advance(HOUR)
    assert delivery.ack()
    delivered_at = START + MINUTE + SECOND
    expected = Settled("a", START + MINUTE, delivered_at, delivered_at + HOUR, 1, ACKED)
    assert queue.history() == [expected]
    assert expected.lateness == SECOND


def test_a_redelivery_tells_of_the_last_one(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    claim(queue).release(MINUTE)
    clock.advance(HOUR)
    assert claim(queue).ack()
    [settled] = queue.history()
    assert (settled.attempts, settled.due_at, settled.lateness) == (2, START, HOUR)


def test_an_extended_lease_began_when_it_began(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    clock.advance(MINUTE)
    assert delivery.extend()
    assert delivery.ack()
    [settled] = queue.history()
    assert (settled.delivered_at, settled.settled_at) == (START, START + MINUTE)


def test_acks_of_a_batch_leave_a_row_each(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer_batch([Message(key, 1) for key in "abc"])
    first = queue.try_poll_many(2)
    clock.advance(SECOND)
    last = claim(queue)
    assert first[0].ack()
    assert queue.ack_many([*first, last, last]) == 2
    assert told(queue.history()) == [("a", ACKED), ("b", ACKED), ("c", ACKED)]
    assert [one.lateness for one in queue.history()] == [SECOND, 0 * SECOND, 0 * SECOND]


def test_a_burial_leaves_a_row(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    clock.advance(SECOND)
    assert delivery.bury("enough")
    assert queue.history() == [Settled("a", START, START, START + SECOND, 1, BURIED)]


def test_giving_up_counts_the_attempts_that_the_burial_counts(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(history=True, max_attempts=2)
    queue.offer("a", 1)
    for _ in range(2):
        claim(queue)
        clock.advance(DEFAULT_LEASE)
    assert queue.try_poll() is None
    [buried], [settled] = queue.buried(10), queue.history()
    gave_up_at = START + 2 * DEFAULT_LEASE
    assert settled == Settled("a", START, gave_up_at, gave_up_at, buried.attempts, BURIED)
    assert buried.attempts == 2


def test_an_undecodable_payload_leaves_a_row(open_queue: OpenQueue) -> None:
    queue = open_queue(history=True, codec=PickyCodec())
    queue.offer("a", "rotten")
    assert queue.try_poll() is None
    assert queue.history() == [Settled("a", START, START, START, 1, BURIED)]


def test_a_drop_leaves_a_row(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1, START + DAY)
    clock.advance(SECOND)
    assert [queue.drop("a"), queue.drop("a")] == [True, False]
    [settled] = queue.history()
    assert settled == Settled("a", START + DAY, None, START + SECOND, 0, DROPPED)
    assert settled.lateness is None


def test_dropping_all_leaves_a_row_of_each(queue: QueueFace) -> None:
    queue.offer_batch([Message(key, 1) for key in "abc"])
    held = claim(queue)
    assert queue.drop_all(queue.name) == 3
    assert not held.ack()
    assert sorted(told(queue.history())) == [(key, DROPPED) for key in "abc"]
    assert sorted(one.attempts for one in queue.history()) == [0, 0, 1]
    assert queue.drop_all(queue.name) == 0
    assert len(queue.history()) == 3


def test_what_is_replaced_leaves_a_row_each_time(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1, START)
    held = claim(queue)
    clock.advance(SECOND)
    queue.offer("a", 2, START + MINUTE)
    clock.advance(SECOND)
    queue.offer_batch([Message("b", 1), Message("a", 3, START + HOUR)])
    assert not held.ack()
    assert queue.history()[::-1] == [
        Settled("a", START, None, START + SECOND, 1, REPLACED),
        Settled("a", START + MINUTE, None, START + 2 * SECOND, 0, REPLACED),
    ]


def test_a_key_replaced_twice_in_a_batch_leaves_two_rows(queue: QueueFace) -> None:
    queue.offer_batch([Message("a", number, START) for number in range(3)])
    assert told(queue.history()) == [("a", REPLACED)] * 2


def test_offers_that_replace_nothing_leave_nothing(queue: QueueFace) -> None:
    queue.offer("a", 1, START)
    queue.offer("a", 1, START)
    queue.offer("a", 2, START, replace=False)
    queue.offer_batch([Message("a", 1, START), Message("a", 2, START, replace=False)])
    assert queue.history() == []


def test_what_stays_in_the_queue_leaves_nothing(queue: QueueFace) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    assert delivery.extend()
    assert delivery.release()
    queue.read("a")
    queue.stats()
    assert queue.history() == []


def test_a_revived_message_is_settled_again(queue: QueueFace) -> None:
    queue.offer("a", 1)
    claim(queue).bury("enough")
    assert queue.revive("a")
    assert claim(queue).ack()
    assert told(queue.history()) == [("a", BURIED), ("a", ACKED)]


@pytest.mark.parametrize("lose", LOSSES, ids=lambda loss: loss.__name__)
def test_a_lost_lease_leaves_nothing(queue: QueueFace, clock: ManualClock, lose: Loss) -> None:
    queue.offer("a", "same", START)
    holder = claim(queue)
    lose(queue, clock, holder)
    before = queue.history()
    assert attempts_to_settle(holder) == [False] * 4
    assert queue.ack_many([holder]) == 0
    assert queue.history() == before


def test_the_newest_comes_first(queue: QueueFace, clock: ManualClock) -> None:
    for key in "bacd":
        queue.offer(key, 1)
        claim(queue).ack()
        clock.advance(SECOND)
    assert [one.key for one in queue.history()] == ["d", "c", "a", "b"]
    assert [one.key for one in queue.history(2)] == ["d", "c"]
    assert [queue.history(0), queue.history(-1)] == [[], []]


def test_settled_at_one_instant_the_last_comes_first(queue: QueueFace) -> None:
    for key in "bac":
        queue.offer(key, 1)
        claim(queue).ack()
    assert [one.key for one in queue.history()] == ["c", "a", "b"]


def test_days_follow_one_another(queue: QueueFace, clock: ManualClock) -> None:
    for number in range(6):
        queue.offer(str(number), 1)
        claim(queue).ack()
        clock.advance(DAY)
    clock.set(START - 400 * DAY)  # long before, as a clock may be
    queue.offer("early", 1)
    claim(queue).ack()
    assert [one.key for one in queue.history()] == ["5", "4", "3", "2", "1", "0", "early"]


def test_a_queue_knows_its_own_history_only(open_queue: OpenQueue) -> None:
    orders, invoices, texts = (
        open_queue("orders", history=True),
        open_queue("invoices", history=True),
        open_queue("orders", history=True, codec=str),
    )
    for queue, key in ((orders, "a"), (invoices, "b"), (texts, "c")):
        queue.offer(key, "x")
        claim(queue).ack()
    assert [told(each.history()) for each in (orders, invoices, texts)] == [
        [("a", ACKED)],
        [("b", ACKED)],
        [("c", ACKED)],
    ]


def test_nothing_is_kept_unless_asked_for(open_queue: OpenQueue) -> None:
    queue = open_queue()
    queue.offer_batch([Message(key, 1) for key in "abcd"])
    queue.offer("a", 2, START)
    deliveries = queue.try_poll_many(3)
    assert deliveries[0].ack()
    assert deliveries[1].bury("enough")
    assert queue.drop("d")
    queue.drop_all(queue.name)
    assert queue.history() == []


def test_whoever_settles_decides(open_queue: OpenQueue) -> None:
    keeps, forgets = open_queue(history=True), open_queue()
    keeps.offer_batch([Message("a", 1), Message("b", 1)])
    assert claim(forgets).ack()
    assert keeps.history() == []
    held = claim(forgets)
    assert keeps.ack_many([held]) == 1
    assert told(forgets.history()) == [("b", ACKED)]


def test_a_consumer_leaves_rows(queue: QueueFace, stage: Stage, consume: Consume) -> None:
    queue.offer_batch([Message("a", 1), Message("b", 1), Message("c", 1)])
    with consume(queue, concurrency=1):
        stage.next().end()
        stage.next().end(Bury("enough"))
        last = stage.next()
        assert last.delivery.ack()
        last.end()
        until(lambda: len(queue.history()) == 3)
    assert sorted(told(queue.history())) == [("a", ACKED), ("b", BURIED), ("c", ACKED)]


def test_what_a_consumer_gives_back_leaves_nothing(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    queue.offer_batch([Message(key, 1) for key in "abc"])
    consumer = consume(queue, concurrency=1)
    stage.next().end()
    running = stage.next()
    stopping = in_background(consumer.stop)
    until(lambda: queue.stats().due == 1)
    running.end()
    stopping.result(PATIENCE)
    assert set(told(queue.history())) == {("a", ACKED), ("b", ACKED)}


def test_ticks_that_are_removed_or_replaced_leave_a_row(queue: QueueFace) -> None:
    queue.cron.install_tick(ONE, "reports", messages(1, 2))
    queue.cron.install_tick(ONE, "reports", messages(1, payload="other"))
    queue.cron.install_tick(TWO, "reports", messages(3))
    assert queue.cron.pause("reports")
    one, two, three = after(1, 2, 3)
    assert told(queue.history())[0] == (key_of(one), REPLACED)
    assert sorted(told(queue.history())[1:]) == sorted(
        [(key_of(one), DROPPED), (key_of(two), DROPPED), (key_of(three, TWO), DROPPED)]
    )


def test_an_uninstalled_tick_leaves_a_row(queue: QueueFace) -> None:
    queue.cron.install_tick(ONE, "reports", messages(1))
    assert queue.cron.uninstall_tick(ONE, "reports") == 1
    [settled] = queue.history()
    assert settled == Settled(key_of(after(1)[0]), after(1)[0], None, START, 0, DROPPED)


@pytest.mark.argument_checks
@pytest.mark.parametrize("history", [None, 1, "yes"])
def test_history_is_a_plain_choice(open_queue: OpenQueue, history: object) -> None:
    with pytest.raises(TypeError, match="history must be True or False"):
        open_queue(history=history)


def test_the_history_of_one_key(queue: QueueFace, clock: ManualClock) -> None:
    for payload in range(3):
        for key in ("a", "A", "b"):
            queue.offer(key, payload)
            assert claim(queue).ack()
        clock.advance(SECOND)
    found = queue.history(key="a")
    assert [one.key for one in found] == ["a"] * 3
    assert [one.settled_at for one in found] == [START + ago * SECOND for ago in (2, 1, 0)]
    assert queue.history(2, key="a") == found[:2]
    assert queue.history(key="nothing") == []
    with pytest.raises(ValueError, match=r"^key must"):
        queue.history(key="")


def settled_in(queue: QueueFace) -> Settled:
    """Wait until a consumer has settled the only message, and return what the history says."""
    until(lambda: bool(queue.history()))
    [settled] = queue.history()
    return settled


def test_the_handlers_own_time_is_recorded(
    queue: QueueFace, consume: Consume, clock: ManualClock
) -> None:
    queue.offer("a", 1)
    consume(queue, lambda _: clock.advance(3 * SECOND))
    settled = settled_in(queue)
    assert (settled.outcome, settled.handler_time) == (ACKED, 3 * SECOND)


def test_the_time_of_a_handler_that_fails_is_recorded_with_the_burial(
    queue: QueueFace, consume: Consume, clock: ManualClock
) -> None:
    def fail(_: object) -> None:
        clock.advance(2 * SECOND)
        raise ValueError("no")

    queue.offer("a", 1)
    consume(queue, fail, max_attempts=1)
    settled = settled_in(queue)
    assert (settled.outcome, settled.handler_time) == (BURIED, 2 * SECOND)


@pytest.mark.parametrize("outcome", [ACKED, BURIED])
def test_the_time_ends_when_the_handler_settles_the_message_itself(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock, outcome: Outcome
) -> None:
    queue.offer("a", 1)
    with consume(queue):
        scene = stage.next()
        clock.advance(SECOND)
        assert scene.delivery.ack() if outcome is ACKED else scene.delivery.bury("enough")
        clock.advance(HOUR)
        scene.end()
    settled = settled_in(queue)
    assert (settled.outcome, settled.handler_time) == (outcome, SECOND)


def test_the_time_ends_when_the_handler_acks_many_messages(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer("a", 1)
    with consume(queue):
        scene = stage.next()
        clock.advance(SECOND)
        assert queue.ack_many([scene.delivery]) == 1
        clock.advance(HOUR)
        scene.end()
    settled = settled_in(queue)
    assert (settled.outcome, settled.handler_time) == (ACKED, SECOND)


def test_a_message_that_was_polled_has_no_handler_time(queue: QueueFace) -> None:
    queue.offer("a", 1)
    assert claim(queue).ack()
    assert queue.history()[0].handler_time is None

"""What a consumer has in hand: fetched, running, handled."""

import sys
from typing import Any

from duequeue.consumer.solitude import Caution
from duequeue.consumer.workload import BACKLOG, Done, Workload
from duequeue.leased import LeasedMessage
from duequeue.port.store import Claimed, Lease
from duequeue.verdict import Acked

Load = Workload[LeasedMessage[Any]]


def messages(count: int) -> list[LeasedMessage[Any]]:
    return [
        LeasedMessage(
            "orders", Claimed(Lease(n, 1, 0, str(n)), str(n), b"", 0, 1, None, 0), n, 1000
        )
        for n in range(count)
    ]


def take(load: Load) -> LeasedMessage[Any]:
    message = load.take()
    assert message is not None
    return message


def test_messages_are_handed_out_in_the_order_they_came() -> None:
    load = Load(10)
    first, second, third = messages(3)
    load.add([first, second], 10)
    load.add([third], 8)
    assert [load.take() for _ in range(4)] == [first, second, third, None]


def test_there_is_room_until_half_a_batch_is_at_hand() -> None:
    load = Load(10)
    assert load.room() == 10
    load.add(messages(5), 10)
    assert load.room() == 5
    load.add(messages(1), 10)
    assert load.room() == 0
    take(load)
    assert load.room() == 5


def test_a_batch_of_one_is_fetched_one_by_one() -> None:
    load = Load(1)
    assert load.room() == 1
    load.add(messages(1), 10)
    assert load.room() == 0
    take(load)
    assert load.room() == 1


def handle_all(load: Load) -> None:
    while (message := load.take()) is not None:
        load.finish(message, Acked())


def test_handlers_that_outrun_the_fetching_have_a_batch_more_waiting() -> None:
    load = Load(10)
    load.add(messages(10), 10)
    assert load.room() == 0
    handle_all(load)
    load.add(messages(10), 10)
    assert load.room() == 10
    load.add(messages(10), 10)
    assert load.room() == 0, "these were not handled meanwhile"


def test_a_handler_at_work_has_outrun_nothing() -> None:
    load = Load(1)
    load.add(messages(1), 1)
    take(load)
    load.add(messages(1), 1)
    assert load.room() == 0


def test_a_quiet_time_is_no_outrunning() -> None:
    load = Load(10)
    load.add(messages(3), 10)
    handle_all(load)
    load.add(messages(10), 10)
    assert load.room() == 0


def test_nothing_is_fetched_while_too_much_is_unsettled() -> None:
    load = Load(2)
    load.add(messages(2 * BACKLOG + 1), 2)
    while (message := load.take()) is not None:
        assert load.room() == 2 or load.unsettled < 2 * BACKLOG
        load.finish(message, Acked())
    assert load.unsettled == 2 * BACKLOG + 1
    assert load.room() == 0
    load.take_done()
    assert load.room() == 2


def test_it_is_idle_when_nothing_runs() -> None:
    load = Load(10)
    load.add(messages(1), 10)
    assert load.idle
    message = take(load)
    assert not load.idle
    load.finish(message, Acked())
    assert load.idle
    assert load.unsettled == 1


def test_what_is_handled_is_handed_over_once() -> None:
    load = Load(10)
    load.add(messages(2), 10)
    done = []
    for _ in range(2):
        message = take(load)
        load.finish(message, Acked())
        done.append(Done(message, Acked()))
    assert load.take_done() == done
    assert load.take_done() == []


def test_without_a_verdict_there_is_nothing_to_settle() -> None:
    load = Load(10)
    load.add(messages(1), 10)
    load.finish(take(load), None)
    assert (load.idle, load.unsettled) == (True, 0)


def test_what_could_not_be_settled_comes_before_what_was_handled_since() -> None:
    load = Load(10)
    load.add(messages(2), 10)
    early, late = take(load), take(load)
    load.finish(early, Acked())
    failed = load.take_done()
    load.finish(late, Acked())
    load.settled(failed, done=False)
    assert [done.message for done in load.take_done()] == [early, late]


def test_what_is_being_settled_is_still_in_hand() -> None:
    load = Load(10)
    load.add(messages(3), 10)
    load.finish(take(load), Acked())
    taken = load.take_done()
    assert (load.in_hand, load.unsettled) == (3, 0)
    load.settled(taken, done=True)
    assert load.in_hand == 2


def test_what_waits_and_what_runs_must_not_lose_its_lease() -> None:
    load = Load(10)
    load.add(messages(4), 10)
    running, settled, handled = take(load), take(load), take(load)
    settled.settled = True
    load.finish(handled, Acked())
    assert [message.key for message in load.held()] == ["3", "0"]
    settled.settled_within = True  # by a transaction that may still be rolled back
    assert [message.key for message in load.held()] == ["3", "0", "1"]
    load.lose([running, settled])
    assert [message.key for message in load.held()] == ["3"]


def test_what_was_lost_is_not_begun() -> None:
    load = Load(10)
    load.add(messages(3), 10)
    running = take(load)
    lost = [running, load.held()[0]]
    assert load.lose(lost) == lost
    assert all(message.lost for message in lost)
    assert load.lose(lost) == [], "each is lost once"
    assert take(load).key == "2"
    assert load.take() is None


def test_what_nobody_has_begun_is_handed_over() -> None:
    load = Load(10)
    load.add(messages(3), 10)
    running = take(load)
    assert [message.key for message in load.take_waiting()] == ["1", "2"]
    assert (load.take(), load.held()) == (None, [running])


def test_who_was_given_up_on_comes_too_late() -> None:
    load = Load(10)
    load.add(messages(1), 10)
    running = take(load)
    assert load.give_up_running() == [running]
    assert (load.idle, load.last_round, running.lost) == (True, True, True)
    load.finish(running, Acked())
    assert load.unsettled == 0


def test_what_was_lost_before_is_not_given_up_on_again() -> None:
    load = Load(10)
    load.add(messages(2), 10)
    lost, running = take(load), take(load)
    load.lose([lost])
    assert load.give_up_running() == [running]


def test_a_stop_may_become_hard_but_never_soft_again() -> None:
    load = Load(10)
    assert load.stop(hard=False)
    assert not load.hard
    assert not load.stop(hard=True)
    assert not load.stop(hard=False)
    assert (load.stopping, load.hard, load.stopped) == (True, True, False)


def test_what_is_in_hand_counts_at_each_moment() -> None:
    """Another consumer that must be alone adds it up without the lock."""
    load = Load(10, caution=Caution(max_attempts=1))
    load.add(messages(1), 1)
    counts = []

    def look(*_: Any) -> Any:
        counts.append(load.in_hand)
        return look

    sys.settrace(look)
    try:
        load.finish(take(load), Acked())
        group = load.take_done()
        load.settled(group, done=False)
    finally:
        sys.settrace(None)
    assert min(counts) > 0


def test_what_comes_while_another_consumer_is_alone_is_given_back() -> None:
    """Its poll was under way. With a single attempt, it counts as in hand from its claim on."""
    load = Load(10, caution=Caution(max_attempts=1))
    late = messages(1)
    load.held_up = True
    assert load.add(late, 1) == late
    assert load.take() is None
    assert load.at_rest
    assert load.room() == 0

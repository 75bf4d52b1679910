"""Messages passed from thread to thread."""

from threading import Barrier, Event
from typing import Any

import pytest

from duequeue.consumer.handover import Handover
from duequeue.contract.phrases import PATIENCE, in_background
from duequeue.leased import LeasedMessage
from duequeue.verdict import ACKED
from tests.unit.test_workload import messages

Hands = Handover[LeasedMessage[Any]]


@pytest.fixture
def hands() -> Hands:
    return Handover(10)


def add(hands: Hands, fetched: list[LeasedMessage[Any]]) -> None:
    with hands as workload:
        workload.add(fetched, 10)


def stop(hands: Hands, *, hard: bool = False) -> None:
    with hands as workload:
        workload.stop(hard=hard)


def test_as_many_workers_begin_as_there_are_messages(hands: Hands) -> None:
    """Each wakes the next, although only one is woken by what comes in."""
    begun = Barrier(6)

    def work() -> None:
        if hands.next() is not None:
            begun.wait(PATIENCE)

    workers = [in_background(work) for _ in range(7)]
    add(hands, messages(5))
    begun.wait(PATIENCE)
    stop(hands)
    for worker in workers:
        worker.result(PATIENCE)


def test_no_message_is_left_lying_however_workers_meet(hands: Hands) -> None:
    everything = messages(3000)
    handled: list[str] = []
    enough = Event()

    def work() -> None:
        message = hands.next()
        while message is not None:
            handled.append(message.key)
            if len(handled) == len(everything):
                enough.set()
            message = hands.next(message, ACKED)

    workers = [in_background(work) for _ in range(4)]
    for at in range(0, len(everything), 3):
        add(hands, everything[at : at + 1])  # a worker wakes up for it
        add(hands, everything[at + 1 : at + 3])  # and may find more, or nothing
    assert enough.wait(PATIENCE), f"{hands.workload.in_hand} in hand"
    stop(hands)
    for worker in workers:
        worker.result(PATIENCE)
    assert sorted(handled) == sorted(message.key for message in everything)


def test_what_is_lost_makes_room(hands: Hands) -> None:
    lost = messages(10)
    add(hands, lost)
    asking = Event()

    def ask() -> int:
        asking.set()
        return hands.await_room()

    room = in_background(ask)
    assert asking.wait(PATIENCE)
    assert not room.done()
    with hands as workload:
        workload.lose(lost)
    assert room.result(PATIENCE) == 10


def test_nothing_is_handed_out_once_stopping(hands: Hands) -> None:
    waiting = messages(3)
    add(hands, waiting)
    assert hands.next() is waiting[0]
    stop(hands)
    assert hands.next(waiting[0], ACKED) is None
    with hands as workload:
        assert workload.take_waiting() == waiting[1:]
        assert [done.message for done in workload.take_done()] == waiting[:1]
    assert hands.await_room() == 0


def test_a_rest_ends_when_a_stop_begins_and_when_it_becomes_hard(hands: Hands) -> None:
    before = in_background(lambda: hands.rest(3600))
    stop(hands)
    before.result(PATIENCE)
    during = in_background(lambda: hands.rest(3600))
    assert not during.done()
    stop(hands, hard=True)
    during.result(PATIENCE)


def test_a_hard_stop_waits_for_no_handler(hands: Hands) -> None:
    add(hands, messages(1))
    assert hands.next() is not None
    stop(hands)
    waiting = in_background(lambda: hands.await_handlers(3600))
    assert not waiting.done()
    stop(hands, hard=True)
    waiting.result(PATIENCE)


def test_the_end_wakes_those_who_wait_for_it(hands: Hands) -> None:
    stopped = in_background(hands.await_stopped)
    last_round = in_background(lambda: hands.await_unsettled(3600))
    stop(hands)
    assert not stopped.done()
    with hands as workload:
        workload.end()
    stopped.result(PATIENCE)
    assert last_round.result(PATIENCE)

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


def test_as_many_workers_begin_as_there_are_messages(hands: Hands) -> None:
    """Each wakes the next, although only one is woken by what comes in."""
    begun = Barrier(6)

    def work() -> None:
        if hands.next() is not None:
            begun.wait(PATIENCE)

    workers = [in_background(work) for _ in range(7)]
    hands.add(messages(5), 10)
    begun.wait(PATIENCE)
    assert hands.stop()
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
        hands.add(everything[at : at + 1], 10)  # a worker wakes up for it
        hands.add(everything[at + 1 : at + 3], 10)  # and may find more, or nothing
    assert enough.wait(PATIENCE), f"{hands.in_hand} in hand"
    hands.stop()
    for worker in workers:
        worker.result(PATIENCE)
    assert sorted(handled) == sorted(message.key for message in everything)


def test_what_is_lost_makes_room(hands: Hands) -> None:
    lost = messages(10)
    hands.add(lost, 10)
    asking = Event()

    def ask() -> int:
        asking.set()
        return hands.await_room()

    room = in_background(ask)
    assert asking.wait(PATIENCE)
    assert not room.done()
    hands.lose(lost)
    assert room.result(PATIENCE) == 10


def test_nothing_is_handed_out_once_stopping(hands: Hands) -> None:
    waiting = messages(3)
    hands.add(waiting, 10)
    assert hands.next() is waiting[0]
    assert hands.stop()
    assert not hands.stop()
    assert hands.next(waiting[0], ACKED) is None
    assert hands.take_waiting() == waiting[1:]
    assert [done.message for done in hands.take_done()] == waiting[:1]
    assert hands.await_room() == 0

"""Waiting for a response: what ends it, in this process and from another."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from duequeue import ManualClock, Message, NotAnswered, QueueClosed, Response
from duequeue.contract.faces import Face, QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.ledger import Ledger, OpenCounted
from duequeue.contract.phrases import (
    DAY,
    HOUR,
    MILLISECOND,
    MINUTE,
    PATIENCE,
    SECOND,
    claim,
    in_background,
)
from duequeue.contract.stage import until

ROUNDS = 5

# Serves one message as a process of its own does, and says when it is ready for it.
ANOTHER_CONSUMER = """
import sys
from duequeue import Queue

url, how = sys.argv[1:]
with Queue.open(url, "orders") as queue:
    print("ready", flush=True)
    sys.stdin.readline()
    if how == "drop":
        queue.drop("a")
    else:
        delivery = queue.poll(timeout=30)
        delivery.ack(response=delivery.payload) if how == "ack" else delivery.bury("bad")
"""

# Offers a message and prints the response, or asks for it without an offer.
ANOTHER_PRODUCER = """
import datetime, json, sys
from duequeue import Queue

url, how = sys.argv[1:]
with Queue.open(url, "orders", poll_interval=datetime.timedelta(days=1)) as queue:
    if how == "offers":
        queue.offer("a", 7)
    print("ready", flush=True)
    response = queue.response("a", timeout=30)
    print(json.dumps(None if response is None else response.value), flush=True)
"""


def let_it_fall_asleep(queue: QueueFace) -> None:
    for _ in range(5):
        queue.stats()


@contextmanager
def process(script: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a script in a process of its own, and wait until it is ready."""
    command = [sys.executable, "-c", script, *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "ready\n"
            yield running
            assert running.wait(PATIENCE) == 0
        finally:
            running.kill()


@pytest.fixture
def patient(open_queue: OpenQueue) -> QueueFace:
    """A queue that does not look by itself, so that only wake-ups count."""
    return open_queue(poll_interval=DAY)


def test_a_waiting_call_gets_the_response_at_once(patient: QueueFace) -> None:
    for number in range(ROUNDS):
        patient.offer("a", number)
        waiting = in_background(lambda: patient.response("a"))
        let_it_fall_asleep(patient)
        assert claim(patient).ack(response=number)
        assert waiting.result(PATIENCE) == Response(number, START)


def test_another_queue_object_answers(patient: QueueFace, open_queue: OpenQueue) -> None:
    other = open_queue()
    for number in range(ROUNDS):
        patient.offer("a", number)
        waiting = in_background(lambda: patient.response("a"))
        let_it_fall_asleep(patient)
        assert claim(other).ack(response=number)
        assert waiting.result(PATIENCE) == Response(number, START)


def test_many_wait_for_one_response_and_each_for_its_own(patient: QueueFace) -> None:
    keys = ["a", "a", "b", "c"]
    patient.offer_batch([Message(key, key) for key in "abc"])
    waiting = [in_background(partial(patient.response, key)) for key in keys]
    let_it_fall_asleep(patient)
    for delivery in patient.try_poll_many(3):
        assert delivery.ack(response=delivery.payload)
    found = [each.result(PATIENCE) for each in waiting]
    assert found == [Response(key, START) for key in keys]


def test_a_call_may_wait_before_the_message_is_offered(patient: QueueFace) -> None:
    waiting = in_background(lambda: patient.response("a"))
    let_it_fall_asleep(patient)
    patient.offer("a", 1)
    let_it_fall_asleep(patient)
    assert not waiting.done()
    assert claim(patient).ack(response=2)
    assert waiting.result(PATIENCE) == Response(2, START)


ENDS: dict[str, Callable[[QueueFace], object]] = {
    "buried": lambda queue: claim(queue).bury("buried"),
    "dropped": lambda queue: queue.drop("a"),
}


@pytest.mark.parametrize("reason", ENDS)
def test_a_waiting_call_learns_that_there_will_be_no_response(
    patient: QueueFace, reason: str
) -> None:
    for number in range(ROUNDS):
        patient.offer("a", number)
        waiting = in_background(lambda: patient.response("a"))
        let_it_fall_asleep(patient)
        ENDS[reason](patient)
        with pytest.raises(NotAnswered, match=reason):
            waiting.result(PATIENCE)


def test_a_waiting_call_goes_on_while_the_message_is_retried(patient: QueueFace) -> None:
    patient.offer("a", 1)
    waiting = in_background(lambda: patient.response("a"))
    claim(patient).release()
    patient.offer("a", 2)
    let_it_fall_asleep(patient)
    assert not waiting.done()
    assert claim(patient).ack(response="at last")
    assert waiting.result(PATIENCE) == Response("at last", START)


def until_looked(ledger: Ledger, clock: ManualClock, waiting: "Future[Any]", times: int) -> None:
    """Wait until a call that waits has looked this many times, or has ended."""

    def has_looked() -> bool:
        clock.advance(MILLISECOND)  # which makes it look again
        return waiting.done() or ledger["response"] >= times

    until(has_looked)


def test_a_waiting_call_looks_as_often_as_need_be(
    open_counted: OpenCounted, clock: ManualClock
) -> None:
    queue, ledger = open_counted()
    queue.offer("a", 1)
    waiting = in_background(lambda: queue.response("a"))
    until_looked(ledger, clock, waiting, 4)
    assert claim(queue).ack(response="at last")
    response = waiting.result(PATIENCE)
    assert response is not None
    assert response.value == "at last"


def test_a_message_that_leaves_without_an_answer_ends_the_wait(
    open_counted: OpenCounted, clock: ManualClock
) -> None:
    queue, ledger = open_counted()
    queue.offer("a", 1)
    waiting = in_background(lambda: queue.response("a"))
    until_looked(ledger, clock, waiting, 2)
    assert claim(queue).ack()
    clock.advance(3 * SECOND)  # the next regular look
    assert waiting.result(PATIENCE) is None


def test_the_timeout_passes_in_real_time(queue: QueueFace) -> None:
    queue.offer("a", 1)
    assert queue.response("a", timedelta(milliseconds=5)) is None
    assert queue.response("unknown", 0.005) is None


def test_the_timeout_passes_on_the_injected_clock(patient: QueueFace, clock: ManualClock) -> None:
    for _ in range(ROUNDS):
        waiting = in_background(lambda: patient.response("a", HOUR))
        let_it_fall_asleep(patient)
        # The call may be so slow to start that its hour begins after the first move.
        while not waiting.done():
            clock.advance(HOUR)
            let_it_fall_asleep(patient)
        assert waiting.result() is None


def test_closing_the_queue_ends_the_wait(patient: QueueFace) -> None:
    waiting = in_background(lambda: patient.response("a"))
    let_it_fall_asleep(patient)
    patient.close()
    with pytest.raises(QueueClosed):
        waiting.result(PATIENCE)


@pytest.mark.parametrize("how", ["ack", "bury", "drop"])
def test_another_process_answers(face: Face, shared_url: str, how: str) -> None:
    with (
        face.open(shared_url, "orders", poll_interval=DAY) as queue,
        process(ANOTHER_CONSUMER, shared_url, how) as consumer,
    ):
        queue.offer("a", 7)
        waiting = in_background(lambda: queue.response("a"))
        let_it_fall_asleep(queue)
        consumer.communicate("go\n", PATIENCE)
        if how == "ack":
            response = waiting.result(PATIENCE)
            assert response is not None
            assert response.value == 7
        else:
            with pytest.raises(NotAnswered, match=r"bad|dropped"):
                waiting.result(PATIENCE)


def test_another_process_waits(face: Face, shared_url: str) -> None:
    with face.open(shared_url, "orders") as queue:
        for how in ("offers", "asks"):
            with process(ANOTHER_PRODUCER, shared_url, how) as producer:
                if how == "offers":
                    delivery = queue.poll(MINUTE)
                    assert delivery is not None
                    assert delivery.ack(response={"total": delivery.payload})
                assert producer.stdout is not None
                assert json.loads(producer.stdout.readline()) == {"total": 7}


@pytest.mark.argument_checks
def test_no_wait_begins_with_a_bad_argument(queue: QueueFace) -> None:
    bad: Any = "soon"
    with pytest.raises(TypeError, match="timeout"):
        queue.response("a", bad)

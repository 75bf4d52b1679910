"""Producers that use their keys again never read the answer to an earlier message."""

from datetime import timedelta
from functools import partial
from threading import Event
from typing import Any

from duequeue import NotAnswered, Queue, Response
from duequeue.contract.phrases import PATIENCE, in_background

PRODUCERS = 3
CONSUMERS = 3
ROUNDS = 20
OFTEN = timedelta(milliseconds=20)
SOON = timedelta(milliseconds=500)


def consume(url: str, stop: Event) -> int:
    """Settle messages in every way, by turns; return how many were answered."""
    answered = turns = 0
    with Queue[Any].open(url, "orders", poll_interval=OFTEN) as queue:
        while not stop.is_set():
            delivery = queue.poll(timeout=0.05)
            if delivery is None:
                continue
            turns += 1
            match turns % 5:
                case 0:
                    delivery.ack()
                case 1:
                    delivery.bury(str(delivery.payload))
                case 2:
                    delivery.release()
                case _:
                    answered += delivery.ack(response=delivery.payload)
    return answered


def produce(url: str, key: str) -> list[Response | str | None]:
    """Offer message after message under one key, and return what came of each."""
    found: list[Response | str | None] = []
    with Queue[Any].open(url, "orders", poll_interval=OFTEN) as queue:
        for number in range(ROUNDS):
            queue.offer(key, number)
            try:
                # A message that is acked without an answer before the first look is waited for.
                found.append(queue.response(key, SOON))
            except NotAnswered as error:
                found.append(error.reason)
    return found


def test_no_answer_is_to_an_earlier_message(shared_url: str) -> None:
    Queue.open(shared_url, "orders").close()
    stop = Event()
    consumers = [in_background(partial(consume, shared_url, stop)) for _ in range(CONSUMERS)]
    producers = [in_background(partial(produce, shared_url, key)) for key in "abc"[:PRODUCERS]]
    try:
        for producer in producers:
            outcomes = producer.result(4 * PATIENCE)
            for number, outcome in enumerate(outcomes):
                if isinstance(outcome, Response):
                    assert outcome.value == number
                elif outcome is not None:
                    assert outcome == str(number)
            assert any(isinstance(outcome, Response) for outcome in outcomes)
    finally:
        stop.set()
    assert sum(consumer.result(PATIENCE) for consumer in consumers) > 0

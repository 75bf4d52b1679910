"""Polls and acks: one by one, a hundred at a time, and by a worker."""

from bench.contender import Contender
from bench.workload import Outcome, Workload, rate


def one(contender: Contender, messages: int) -> Outcome:
    """Poll and ack one message after another."""
    contender.load(messages)
    return rate(messages, contender.poll_ack_one(messages))


def many(contender: Contender, messages: int) -> Outcome:
    """Poll and ack a hundred messages at a time."""
    contender.load(messages)
    return rate(messages, contender.poll_ack_many(messages))


def worker(contender: Contender, messages: int) -> Outcome:
    """Let a worker handle the messages."""
    contender.load(messages)
    return rate(messages, contender.consume(messages))


WORKLOADS = [
    Workload(
        "poll-ack-one",
        "Poll and ack one",
        "One caller polls a due message and acks it, then polls the next one.",
        "poll_ack_one",
        one,
        full=1000,
        quick=500,
    ),
    Workload(
        "poll-ack-100",
        "Poll 100 and ack",
        "One caller polls a hundred messages and acks them together, then polls the next hundred.",
        "poll_ack_many",
        many,
        full=30_000,
        quick=10_000,
    ),
    Workload(
        "consume",
        "Consumer",
        "A worker process calls an empty handler; the time is from the first call to the last.",
        "consume",
        worker,
        full=5_000,
        quick=3_000,
    ),
]

"""Taking messages out and settling them: one by one, a hundred at a time, and by a worker."""

from bench.contender import Contender
from bench.workload import Outcome, Workload, rate


def one(contender: Contender, messages: int) -> Outcome:
    """One after the other."""
    contender.load(messages)
    return rate(messages, contender.poll_ack_one(messages))


def many(contender: Contender, messages: int) -> Outcome:
    """A hundred at a time."""
    contender.load(messages)
    return rate(messages, contender.poll_ack_many(messages))


def worker(contender: Contender, messages: int) -> Outcome:
    """By a worker."""
    contender.load(messages)
    return rate(messages, contender.consume(messages))


WORKLOADS = [
    Workload(
        "poll-ack-one",
        "Poll and ack one",
        "One caller takes a message that is due and settles it, then the next.",
        "poll_ack_one",
        one,
        full=1000,
        quick=500,
    ),
    Workload(
        "poll-ack-100",
        "Poll 100 and ack",
        "One caller takes a hundred messages and settles them together, then the next hundred.",
        "poll_ack_many",
        many,
        full=30_000,
        quick=10_000,
    ),
    Workload(
        "consume",
        "Consumer",
        "A worker process calls a handler that does nothing, from the first call to the last.",
        "consume",
        worker,
        full=5_000,
        quick=3_000,
    ),
]

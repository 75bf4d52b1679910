"""Messages of different sizes, in and out."""

from functools import partial

from bench.contender import Contender
from bench.workload import RATE, Outcome, Workload

ONLY = (
    "duequeue",
    "duequeue-sqlite-normal",
    "duequeue-redis",
    "seed",
    "pgqueuer",
    "procrastinate",
    "huey-redis",
)


def in_and_out(size: int, contender: Contender, messages: int) -> Outcome:
    """Offer one by one, then poll and ack one by one."""
    contender.payload = "x" * size
    seconds = contender.offer_one(messages) + contender.poll_ack_one(messages)
    return Outcome({RATE: messages / seconds, "MB/s": messages * size / seconds / 1e6})


def _of(name: str, size: int, messages: int) -> Workload:
    return Workload(
        f"payload-{name.replace(' ', '').lower()}",
        f"Payloads of {name}",
        "Offer one by one, then poll and ack one by one.",
        "poll_ack_one",
        partial(in_and_out, size),
        full=messages,
        rounds=2,
        only=ONLY,
    )


WORKLOADS = [
    _of("100 B", 100, 500),
    _of("10 kB", 10_000, 300),
    _of("1 MB", 1_000_000, 20),
]

"""Offers: one by one, by several callers at once, and many at a time."""

from functools import partial

from bench.contender import Contender
from bench.workload import Outcome, Workload, rate


def one(contender: Contender, messages: int) -> Outcome:
    """Offer one message after another."""
    return rate(messages, contender.offer_one(messages))


def together(callers: int, contender: Contender, messages: int) -> Outcome:
    """Offer with several callers at once."""
    return rate(messages, contender.offer_together(messages, callers))


def batch(contender: Contender, messages: int) -> Outcome:
    """Offer many messages at a time."""
    return rate(messages, contender.offer_batch(messages))


WORKLOADS = [
    Workload(
        "offer-one",
        "Offer one",
        "One caller offers one message after the other; each is durable before the next.",
        "offer_one",
        one,
        full=1000,
        quick=500,
    ),
    Workload(
        "offer-4",
        "Offer one, 4 callers",
        "The same with four callers in one process.",
        "offer_together",
        partial(together, 4),
        full=1000,
        only=("duequeue", "duequeue-tasks", "pgqueuer", "seed", "pgbench"),
    ),
    Workload(
        "offer-16",
        "Offer one, 16 callers",
        "The same with sixteen callers in one process.",
        "offer_together",
        partial(together, 16),
        full=3000,
        quick=1000,
    ),
    Workload(
        "offer-batch",
        "Offer a batch",
        "One caller offers many messages, in the fastest way that the contender has.",
        "offer_batch",
        batch,
        full=30_000,
        quick=10_000,
    ),
]

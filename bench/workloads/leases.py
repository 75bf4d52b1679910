"""The cost of 100,000 live leases for a poll that looks for more messages."""

import time
from datetime import timedelta
from statistics import median

from bench.contender import Contender, timed
from bench.contenders.duequeue_postgres import OnPostgres
from bench.partner import partner
from bench.workload import Outcome, Workload
from duequeue import Queue

LOOKS = 20
PATIENCE = 30


def held(contender: Contender, messages: int) -> Outcome:
    """Measure a poll that finds nothing, and how soon a dead consumer's message comes again."""
    assert isinstance(contender, OnPostgres)
    contender.load(messages)
    queue = contender.queue
    while queue.try_poll_many(1000):
        pass
    looks = [timed(1, lambda _: queue.try_poll()) * 1000 for _ in range(LOOKS)]
    delays = [_redelivery(contender, queue, number) for number in range(3)]
    return Outcome({"look p50 ms": median(looks), "redelivery ms": median(delays)})


def _redelivery(contender: OnPostgres, queue: Queue[str], number: int) -> float:
    queue.offer(f"abandoned-{number}", "")
    with partner(contender, "abandon", 1) as other:
        other.await_ready()
        other.go()
        ends_at: float = other.result()
    delivery = queue.poll(timedelta(seconds=PATIENCE))
    assert delivery is not None
    delivery.ack()
    return time.time() * 1000 - ends_at


WORKLOADS = [
    Workload(
        "leases",
        "A hundred thousand live leases",
        "A poll that walks over all of them, and the delay from the end of a dead consumer's lease "
        "until its message is delivered again, which is at most the poll interval of 3 s.",
        "poll_ack_many",
        held,
        full=100_000,
        better="less",
        rounds=1,
        only=("duequeue",),
    )
]

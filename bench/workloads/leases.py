"""What a hundred thousand live leases cost those who look for more."""

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
    """How long a look in vain takes, and how soon a dead consumer's message comes again."""
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
        "A look that walks over all of them, and the delay until a dead consumer's message is "
        "delivered again after its lease, which the poll interval of 3 s bounds.",
        "poll_ack_many",
        held,
        full=100_000,
        better="less",
        rounds=1,
        only=("duequeue",),
    )
]

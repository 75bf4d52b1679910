"""Several processes that poll one store."""

from contextlib import ExitStack
from functools import partial
from time import perf_counter

from bench.contender import BATCH, Contender
from bench.partner import partner
from bench.workload import Outcome, Workload, rate


def shared(processes: int, contender: Contender, messages: int) -> Outcome:
    """Poll a hundred and ack, in processes with equal shares."""
    share = max(BATCH, messages // processes // BATCH * BATCH)  # whole batches for every process
    contender.load(share * processes)
    with ExitStack() as opened:
        partners = [
            opened.enter_context(partner(contender, "poll_ack_many", share))
            for _ in range(processes)
        ]
        for each in partners:
            each.await_ready()
        began = perf_counter()
        for each in partners:
            each.go()
        for each in partners:
            each.result()
        return rate(share * processes, perf_counter() - began)


def _of(processes: int) -> Workload:
    return Workload(
        f"processes-{processes}",
        f"Poll 100 and ack, {processes} process" + ("es" if processes > 1 else ""),
        "Each process takes an equal share of the messages.",
        "poll_ack_many",
        partial(shared, processes),
        full=40_000,
        rounds=2,
        only=("duequeue", "seed", "pgqueuer", "duequeue-mariadb", "seed-mariadb"),
    )


WORKLOADS = [_of(processes) for processes in (1, 2, 4)]

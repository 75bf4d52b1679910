"""How soon a message reaches a sleeping worker, how late scheduled ones come, and at what cost."""

import time

from bench.contender import Contender
from bench.partner import partner
from bench.workload import Outcome, Workload, percentiles
from tests.sql.wire import Wire

SETTLING_SECONDS = 2


def latency(contender: Contender, messages: int) -> Outcome:
    """Measure the way from one process to another, when each message finds the worker asleep."""
    with partner(contender, "receive", messages) as receiver:
        receiver.await_ready()
        contender.ping(messages)
        ages: list[float] = receiver.result()
    return percentiles(ages[messages // 10 :])


def lateness(contender: Contender, messages: int) -> Outcome:
    """Measure how late a handler gets messages that are scheduled over five seconds."""
    return percentiles(contender.keep_time(messages, 5))


def burst(contender: Contender, messages: int) -> Outcome:
    """Measure how late messages come that are all scheduled for the same millisecond."""
    return percentiles(contender.keep_time(messages, 0))


def idle(contender: Contender, seconds: int) -> Outcome:
    """Count the statements that an idle worker sends."""
    with Wire(contender.url) as wire:
        contender.url = (
            wire.url.partition("?")[0] + "?sslmode=disable"
        )  # every driver has this option
        with partner(contender, "stay_idle", SETTLING_SECONDS + seconds) as worker:
            worker.await_ready()
            worker.go()
            time.sleep(SETTLING_SECONDS)
            before = wire.statements
            worker.result()
    return Outcome({"statements/min": (wire.statements - before) * 60 / seconds})


WORKLOADS = [
    Workload(
        "latency",
        "Idle, end to end",
        "The time from before the offer in one process to the handler in another, one message at a "
        "time.",
        "ping",
        latency,
        full=100,
        quick=50,
        better="less",
    ),
    Workload(
        "lateness",
        "Lateness of scheduled messages",
        "The time from the scheduled instant of a message to its handler.",
        "keep_time",
        lateness,
        full=1000,
        better="less",
        rounds=1,
    ),
    Workload(
        "burst",
        "All on one instant",
        "All messages are scheduled for the same millisecond; the last one shows how long the "
        "drain takes.",
        "keep_time",
        burst,
        full=20_000,
        better="less",
        rounds=1,
        only=("duequeue", "pgqueuer", "graphile-worker", "duequeue-redis", "bullmq-redis"),
    ),
    Workload(
        "idle",
        "A worker with nothing to do",
        "How many statements it sends to PostgreSQL.",
        "stay_idle",
        idle,
        full=8,
        better="less",
        rounds=1,
        stores=("postgres",),
    ),
]

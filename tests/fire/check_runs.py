"""Handlers: while one runs, its consumer keeps the lease, so nobody else gets the message."""

from collections.abc import Iterator

from tests.fire.histories import History, Operation
from tests.fire.logs import Logs, Made
from tests.fire.violations import Broken, Violation

# A keeper looks at its leases every third of a lease, so less than this must not matter to it.
EXCUSE = 4


def judge_runs(history: History, calls: list[Made], logs: Logs) -> Iterator[Violation]:
    """Find deliveries of a message while somebody else's handler was running."""
    for made in calls:
        if made.call.do != "run" or made.call.received is None:
            continue
        for other in history.keys[made.call.received.key]:
            if _took(other, made) and not _excused(made, other, history, logs):
                evidence = f"{made.call.received} ran from {made.began} to {made.ended}\n{other}"
                yield Violation(Broken.OVERLAP, history.queue, other.call.key, evidence)


def _took(other: Operation, run: Made) -> bool:
    """Return whether the same message was delivered once more within a run, for certain."""
    mine, its = run.call.received, other.delivered
    if mine is None or its is None or (its.payload, its.due) != (mine.payload, mine.due):
        return False
    return its.attempt > mine.attempt and run.began < other.began and other.ended < run.ended


def _excused(run: Made, other: Operation, history: History, logs: Logs) -> bool:
    """Return whether the lease may have been lost for a reason that is not the consumer's."""
    received = run.call.received
    assert received is not None
    lease = (received.until - received.at) * 1000
    fetched = run.began - max(0, run.clock_low - received.at) * 1000
    disturbed = any(window.meets(fetched, other.ended, run.process) for window in logs.windows)
    stalled = any(
        stall.meets(fetched, other.ended, run.process)
        and stall.ended - stall.began > lease / EXCUSE
        for stall in logs.stalls
    )
    skewed = any(True for _, note in logs.events("clock"))
    taken_away = any(
        each.do in {"offer", "drop", "release", "ack", "bury"}
        and each.answer not in {"ignored", False}
        and each.began < other.ended
        for each in history.keys[received.key]
        if each.made_by != run.name and each.ended > fetched
    )
    return disturbed or stalled or skewed or taken_away

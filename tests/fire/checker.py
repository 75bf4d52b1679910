"""The verdict on the logs of a round. It sees nothing but the logs.

Each rule looks for the promises that it can judge exactly:

- `judge_keys` searches for an order of the operations on each key, and if there is none, for the
  one promise without which there would be;
- `judge_single_callers` compares a queue that only one actor used with the exact model;
- `judge_end` checks that everything is delivered after the faults, and `judge_runs` that nobody
  else gets a handler's message while the handler runs;
- `judge_ticks` and `judge_history` look at crons and at the history.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.fire.check_crons import judge_ticks, ticks_of
from tests.fire.check_history import judge_history
from tests.fire.check_runs import judge_runs
from tests.fire.check_sequences import judge_sequence
from tests.fire.entries import Call
from tests.fire.histories import History, Operation, history_of
from tests.fire.logs import Logs, Made, read_logs
from tests.fire.search import Search, TooHard
from tests.fire.violations import Broken, Violation

# Names to try, the plainest first. The last resort is `SEVERAL`.
NAMES = (
    Broken.EARLY,
    Broken.OVERLAP,
    Broken.ATTEMPT,
    Broken.PAYLOAD,
    Broken.STALE,
    Broken.TWO_ACKS,
    Broken.REFUSED,
    Broken.BURIAL,
    Broken.CAME_BACK,
    Broken.LOST,
    Broken.OUTCOME,
)


@dataclass
class Verdict:
    """What the logs show: the violations, and how much there was to look at."""

    violations: list[Violation] = field(default_factory=list)
    calls: int = 0
    keys: int = 0
    unknown: int = 0
    undecided: int = 0

    @property
    def names(self) -> set[Broken]:
        return {violation.broken for violation in self.violations}


def check(folder: Path) -> Verdict:
    """Judge the logs in a folder."""
    logs = read_logs(folder)
    verdict = Verdict(calls=len(logs.calls), unknown=sum(not made.known for made in logs.calls))
    verdict.violations += _raised(logs)
    for queue, calls in logs.of_queues().items():
        if len({made.actor for made in calls}) == 1 and calls[0].call.do == "alone":
            verdict.violations += judge_sequence(queue, calls, logs)
            continue
        history = history_of(queue, calls, logs)
        verdict.keys += len(history.keys)
        verdict.violations += _judge_keys(history, calls, verdict)
        verdict.violations += judge_runs(history, calls, logs)
        verdict.violations += judge_ticks(queue, calls)
        verdict.violations += judge_history(history, calls)
        verdict.violations += _judge_end(history, calls)
    return verdict


def _raised(logs: Logs) -> Iterator[Violation]:
    for process, note in logs.events("raised"):
        yield Violation(Broken.RAISED, process, note.actor, note.facts["traceback"])
    for process, note in logs.events("hung"):
        yield Violation(Broken.HUNG, process, note.actor, str(note.facts))


def _judge_keys(history: History, calls: list[Made], verdict: Verdict) -> Iterator[Violation]:
    created = ticks_of(calls)
    for key, operations in sorted(history.keys.items()):
        complete = [*operations, *created.get(key, ()), *_crashes(history, key)]
        try:
            if Search(complete, history).succeeds():
                continue
            name = _name(complete, history)
        except TooHard:
            verdict.undecided += 1
            continue
        if key in created and name in {Broken.CAME_BACK, Broken.OUTCOME}:
            name = Broken.TICK_DOUBLED
        lines = sorted(complete, key=lambda each: each.began)
        yield Violation(name, history.queue, key, "\n".join(map(str, lines)))


def _name(operations: list[Operation], history: History) -> Broken:
    """Find the one promise without which the history would be in order."""
    for broken in NAMES:
        if Search(operations, history, broken).succeeds():
            return broken
    return Broken.SEVERAL


def _crashes(history: History, key: str) -> Iterator[Operation]:
    for window in history.crashes:
        call = Call("crash", key)
        yield Operation("crash", call, window.began, window.ended, window.fault, required=False)


def _judge_end(history: History, calls: list[Made]) -> Iterator[Violation]:
    """Find what did not come although the faults were over and its lease had ended."""
    for made in calls:
        if made.call.do == "leftover" and made.known:
            for key in made.answer:
                lines = sorted(history.keys[key], key=lambda each: each.began)
                evidence = "\n".join(map(str, lines))
                yield Violation(Broken.STUCK, history.queue, key, evidence)

"""Crons: each tick of a period comes once, and none is missing."""

from collections import defaultdict
from collections.abc import Iterator

from tests.fire.entries import Call
from tests.fire.histories import Operation, received_by
from tests.fire.logs import FOREVER, Made
from tests.fire.violations import Broken, Violation


def ticks_of(calls: list[Made]) -> dict[str, list[Operation]]:
    """Return for each tick one creation by its cron, at an unknown time."""
    installations = [made for made in calls if made.call.do == "install"]
    if not installations:
        return {}
    return {
        delivered.key: [
            Operation(
                "offer",
                Call("offer", delivered.key, delivered.payload, delivered.due),
                installations[0].began,
                FOREVER,
                "a cron",
                required=False,
            )
        ]
        for made in calls
        for delivered in received_by(made)
    }


def judge_ticks(queue: str, calls: list[Made]) -> Iterator[Violation]:
    """Find ticks with more than one key, and ticks that never came.

    Every instant counts from the first tick to the last installation, which created the missed
    ticks before the queue was emptied. The first installation may have failed, so it counts only if
    no tick came at all.
    """
    installations = [made for made in calls if made.call.do == "install" and made.known]
    if not installations:
        return
    period = installations[0].call.delay
    keys: dict[int, set[str]] = defaultdict(set)
    for made in calls:
        for delivered in received_by(made):
            keys[_instant(delivered.payload)].add(delivered.key)
    for instant, found in sorted(keys.items()):
        if len(found) > 1:
            yield Violation(Broken.TICK_DOUBLED, queue, str(instant), "\n".join(sorted(found)))
    begin = min(keys, default=min(made.clock_high for made in installations))
    end = max((made.clock_low for made in installations if made.call.facts["last"]), default=0)
    for instant in range(begin // period * period + period, end, period):
        if instant not in keys:
            yield Violation(Broken.TICK_LOST, queue, str(instant), f"from {begin} to {end}")


def _instant(payload: str) -> int:
    """Return the instant of a tick, which is its payload."""
    return int(payload)

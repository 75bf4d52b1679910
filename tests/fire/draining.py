"""The end of a round: when no fault is left, everything that was offered must come."""

import time
from collections.abc import Callable

from duequeue import Queue
from tests.fire.actors import Actor, ActorSpec, Settings, install_cron
from tests.fire.calling import Caller
from tests.fire.entries import Call
from tests.fire.recorder import Recorder

TICKS = "ticks"
# More than any lease and delay of a round. It passes in full only if something is stuck.
PATIENCE = 12.0
PAUSE = 0.05


def drain(
    process: str,
    queue_name: str,
    settings: Settings,
    recorder: Recorder,
    keys: Callable[[], set[str]],
) -> None:
    """Receive and ack whatever comes, then look at what is left."""
    actor = Actor(
        process, ActorSpec(f"drain {queue_name}", "caller", queue_name, 0), settings, recorder
    )
    with Queue.open(settings.url, queue_name, **actor.options()) as queue:
        caller = Caller(recorder, process, actor.spec.name, queue_name, queue, actor.clock.read)
        if queue_name == TICKS:
            install_cron(caller, settings.period, last=True)
            queue.cron.close()
        empty = _empty(caller)
        if not empty:
            recorder_keys = sorted(key for key in keys() if caller.call(Call("contains", key)))
            _record(caller, "leftover", recorder_keys)
        caller.call(Call("buried", limit=1_000_000))
        if settings.history:
            caller.call(Call("history", limit=1_000_000))


def _empty(caller: Caller) -> bool:
    """Ack what comes until nothing waits; return False if something does not come."""
    gives_up_at = time.monotonic() + PATIENCE
    while time.monotonic() < gives_up_at:
        found = caller.call(Call("poll", limit=100))
        if found:
            caller.call(Call("ack_many", deliveries=[each.id for each in found]))
            continue
        left = caller.call(Call("stats"))
        if left and _is_empty(caller, left):
            return True
        time.sleep(PAUSE)
    return False


def _is_empty(caller: Caller, left: dict[str, int]) -> bool:
    # Crons put ticks in ahead of time.
    return left["waiting" if caller.queue_name == TICKS else "total"] == 0


def _record(caller: Caller, do: str, answer: object) -> None:
    recorder, clock = caller.recorder, caller.read_clock()
    number = recorder.invoked(caller.actor, caller.queue_name, clock, Call(do))
    recorder.answered(number, clock, answer)

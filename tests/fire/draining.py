"""The end of a round: when no fault is left, everything that was offered must come."""

import time
from collections.abc import Callable

from duequeue import Queue
from tests.fire.actors import Actor, ActorSpec, Settings
from tests.fire.calling import Caller
from tests.fire.crons import install_cron
from tests.fire.entries import Call
from tests.fire.recorder import Recorder

TICKS = "ticks"
# More than any lease and delay of a round. It passes in full only if something is stuck.
PATIENCE = 12.0
PAUSE = 0.05
EVERYTHING = 1_000_000


def drain(
    process: str,
    queue_name: str,
    settings: Settings,
    recorder: Recorder,
    keys: Callable[[], set[str]],
) -> None:
    """Open a queue and empty it."""
    spec = ActorSpec(f"drain {queue_name}", "caller", queue_name, 0)
    actor = Actor(process, spec, settings, recorder)
    with Queue.open(settings.url, queue_name, **actor.options()) as queue:
        caller = Caller(recorder, process, spec.name, queue_name, queue, actor.clock.read)
        if queue_name == TICKS:
            install_cron(caller, settings.period, last=True).close()
        finish(caller, settings, keys, PATIENCE)


def finish(
    caller: Caller, settings: Settings, keys: Callable[[], set[str]], patience: float
) -> None:
    """Receive and ack whatever comes, then look at what is left."""
    if not _empty(caller, patience):
        left = sorted(key for key in keys() if caller.call(Call("contains", key)))
        clock = caller.read_clock()
        number = caller.recorder.invoked(caller.actor, caller.queue_name, clock, Call("leftover"))
        caller.recorder.answered(number, clock, left)
    caller.call(Call("buried", limit=EVERYTHING))
    if settings.history:
        caller.call(Call("history", limit=EVERYTHING))


def _empty(caller: Caller, patience: float) -> bool:
    """Ack what comes until nothing waits; return False if something does not come."""
    gives_up_at = time.monotonic() + patience
    while True:
        found = caller.call(Call("poll", limit=100))
        if found:
            caller.call(Call("ack_many", deliveries=[each.id for each in found]))
            continue
        left = caller.call(Call("stats"))
        # Crons put ticks in ahead of time.
        if left and left["waiting" if caller.queue_name == TICKS else "total"] == 0:
            return True
        if time.monotonic() > gives_up_at:
            return False
        time.sleep(PAUSE)

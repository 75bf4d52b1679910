"""The one cron of a round, which several nodes install."""

from datetime import datetime, timedelta

from duequeue import CronHandle, Misfire
from duequeue.instants import to_millis
from tests.fire.calling import Caller
from tests.fire.entries import Call

CRON_PREFIX = "beat"


def install_cron(caller: Caller, period: int, *, last: bool) -> CronHandle:
    """Install the cron of the round, and record it as a call."""

    def payload(at: datetime) -> str:
        return str(to_millis(at))

    call = Call("install", delay=period, facts={"last": last})
    number = caller.recorder.invoked(caller.actor, caller.queue_name, caller.read_clock(), call)
    handle: CronHandle = caller.queue.cron.install_periodic_tick(
        CRON_PREFIX, timedelta(milliseconds=period), payload, misfire=Misfire.fire_all(10_000)
    )
    caller.recorder.answered(number, caller.read_clock(), None)
    return handle

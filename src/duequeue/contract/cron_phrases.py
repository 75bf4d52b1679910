"""The few phrases in which the contract of the crons is written."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from time import monotonic

import pytest

from duequeue import ConfigHash, CronMessage, Every, Schedule
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START
from duequeue.contract.logs import messages_of
from duequeue.contract.phrases import MINUTE, PATIENCE
from duequeue.schedules.tick import tick_key

ONE, TWO = ConfigHash("one"), ConfigHash("two")
EVERY_MINUTE = ConfigHash.of(Every(MINUTE))


def after(*minutes: float) -> list[datetime]:
    """Return the instants at these minutes after the start."""
    return [START + timedelta(minutes=each) for each in minutes]


def messages(*minutes: float, payload: object = "hello") -> list[CronMessage[object]]:
    """Return cron messages for these minutes after the start."""
    return [CronMessage(payload, at) for at in after(*minutes)]


def key_of(at: datetime, config_hash: ConfigHash = ONE, prefix: str = "reports") -> str:
    """Return the key of a tick."""
    return tick_key(prefix, config_hash, at)


def keys(
    ats: Iterable[datetime], config_hash: ConfigHash = ONE, prefix: str = "reports"
) -> list[str]:
    """Return the keys of ticks."""
    return [key_of(at, config_hash, prefix) for at in ats]


def periodic_keys(*minutes: float, prefix: str = "reports") -> list[str]:
    """Return the keys of the ticks of a cron that runs every minute."""
    return keys(after(*minutes), EVERY_MINUTE, prefix)


def assert_holds(queue: QueueFace, expected: Iterable[str]) -> None:
    """Assert that the queue holds these keys and nothing else."""
    wanted = list(expected)
    assert [key for key in wanted if not queue.contains(key)] == []
    assert queue.stats().total == len(wanted)


def run_everything_due(queue: QueueFace) -> list[str]:
    """Handle whatever is due, and return the keys in the order in which they came."""
    handled = []
    while delivery := queue.try_poll():
        handled.append(delivery.key)
        assert delivery.ack()
    return handled


def eventually(condition: Callable[[], bool]) -> None:
    """Ask until the answer is yes; asking takes long enough for others to get on."""
    gives_up_at = monotonic() + PATIENCE
    while not condition():
        assert monotonic() < gives_up_at, "it never came true"


def first_after(schedule: Schedule, instant: datetime, number: int) -> list[datetime]:
    """Return the next ticks of a schedule."""
    found = []
    for _ in range(number):
        instant = schedule.next_after(instant)
        found.append(instant)
    return found


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the crons have logged so far."""
    return messages_of("duequeue.cron", caplog)

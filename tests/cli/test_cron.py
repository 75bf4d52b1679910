"""`duequeue cron`, on every store."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from duequeue import ConfigHash, CronMessage, Crontab, Daily, Queue
from tests.cli.conftest import DueQueue

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _crons(queue: Queue[Any]) -> None:
    """Two crons whose schedules are ours, and one whose ticks only its program knows."""
    queue.cron.install_expression("report", Crontab("30 7 * * MON-FRI", "Europe/Berlin"), "r")
    queue.cron.install_periodic_tick("ping", timedelta(minutes=15), "p", headers={"a": "b"})
    at = datetime.now(UTC).replace(microsecond=0) + HOUR
    queue.cron.install_tick(ConfigHash("own"), "own", [CronMessage("o", at)])


def test_crons_are_listed(duequeue: DueQueue, queue: Queue[Any]) -> None:
    listed = {each["prefix"]: each for each in duequeue("cron", "ls", "--json").json}
    assert listed.keys() == {"own", "ping", "report"}
    assert listed["report"]["schedule"] == "cron 30 7 * * MON-FRI in Europe/Berlin"
    assert (listed["ping"]["paused"], listed["ping"]["last_tick"]) == (False, None)
    assert duequeue("cron", "ls", "-q").lines == ["own", "ping", "report"]
    assert "running" in duequeue("cron", "ls").lines[1]


def test_the_next_ticks_come_from_the_schedule(duequeue: DueQueue) -> None:
    ran = duequeue("cron", "next", "ping", "-n", "6", "--json")
    ticks = [datetime.fromisoformat(each["at"]) for each in ran.json]
    assert len(ticks) == 6, "the queue itself holds only four"
    assert all(tick.minute % 15 == 0 and tick.second == 0 for tick in ticks)
    assert {later - tick for tick, later in pairwise(ticks)} == {HOUR / 4}
    local = duequeue("cron", "next", "report", "--zone", "Europe/Berlin", "-q").lines
    assert {line[10:16] for line in local} == {"T07:30"}
    assert len(local) == 10


def test_other_ticks_come_from_the_queue(duequeue: DueQueue) -> None:
    ran = duequeue("cron", "next", "own", "--json")
    assert len(ran.json) == 1
    assert "only its program knows the schedule" in ran.err


def test_a_cron_is_paused_and_resumed(duequeue: DueQueue, queue: Queue[Any]) -> None:
    assert duequeue("cron", "pause", "ping").status == 0
    assert {each.prefix: each.paused for each in queue.cron.list()}["ping"]
    again = duequeue("cron", "pause", "ping", "--json")
    assert (again.status, again.json) == (0, [{"prefix": "ping", "state": "paused"}])
    assert "was already paused" in duequeue("cron", "pause", "ping").err
    assert "is paused" in duequeue("cron", "next", "ping").err
    assert duequeue("cron", "resume", "ping", "-q").lines == ["ping"]
    assert not {each.prefix: each.paused for each in queue.cron.list()}["ping"]
    for verb in ("pause", "resume", "next", "run-now"):
        missing = duequeue("cron", verb, "missing")
        assert missing.status == 4
        assert "no cron 'missing' is installed" in missing.err


def test_an_extra_message_has_the_payload_of_a_tick(duequeue: DueQueue, queue: Queue[Any]) -> None:
    key = duequeue("cron", "run-now", "ping", "-q").lines[0]
    found = queue.read(key)
    assert found is not None
    assert (found.payload, found.headers, found.state.value) == ("p", {"a": "b"}, "due")
    assert key.startswith("ping/run-now/")
    assert len(queue.list(prefix="ping/", state="future").messages) == 4
    duequeue("cron", "pause", "ping")
    paused = duequeue("cron", "run-now", "ping")
    assert paused.status == 4
    assert "because it is paused" in paused.err


def test_a_daily_schedule_that_ends_is_understood(duequeue: DueQueue, queue: Queue[Any]) -> None:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    daily = Daily(["09:00", "18:30"], "Europe/Berlin", weekdays=["mon", "sat"])
    queue.cron.install_daily_schedule("shop", daily, "s", until=today + timedelta(days=8))
    ticks = duequeue("cron", "next", "shop", "-n", "50", "--zone", "Europe/Berlin", "--json").json
    assert 1 <= len(ticks) <= 6
    assert {each["local"][11:16] for each in ticks} <= {"09:00", "18:30"}

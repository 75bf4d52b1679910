"""Crons in trouble: payloads that cannot be made, runs that fail, connections that are lost."""

from asyncio import CancelledError
from datetime import datetime
from typing import cast

import pytest

from duequeue import (
    CronMessage,
    ManualClock,
    Misfire,
)
from duequeue.contract.cron_phrases import (
    ONE,
    after,
    assert_holds,
    eventually,
    keys,
    logged,
    periodic_keys,
    run_everything_due,
)
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import HOUR, MINUTE, SECOND, snapshot


@pytest.mark.parametrize(
    "error", [LookupError("none yet"), SystemExit(1), CancelledError()], ids=repr
)
def test_a_payload_that_cannot_be_made_is_tried_again(
    queue: QueueFace, clock: ManualClock, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    broken = {START + 2 * MINUTE}

    def payload(at: datetime) -> str:
        if at in broken:
            raise error
        return at.isoformat()

    handle = queue.cron.install_periodic_tick("reports", MINUTE, payload)
    other = queue.cron.install_periodic_tick("others", MINUTE, "hello")
    assert_holds(queue, periodic_keys(1, 3, 4) + periodic_keys(1, 2, 3, 4, prefix="others"))
    (line,) = logged(caplog)
    assert "'reports'" in line
    assert "2026-03-01T12:02:00+00:00" in line
    handle.refresh()
    assert not queue.contains(periodic_keys(2)[0])
    broken.clear()
    clock.advance(10 * SECOND)
    eventually(lambda: queue.contains(periodic_keys(2)[0]))
    assert handle.active
    assert other.active


@pytest.mark.parametrize("misfire", [Misfire.fire_once(), Misfire.fire_all(10)], ids=repr)
def test_a_payload_that_could_not_be_made_in_time_is_missed(
    queue: QueueFace, clock: ManualClock, misfire: Misfire
) -> None:
    broken = set(after(2))

    def payload(at: datetime) -> str:
        if at in broken:
            raise LookupError("no figures yet")
        return at.isoformat()

    handle = queue.cron.install_periodic_tick("reports", MINUTE, payload, misfire=misfire)
    for _ in range(3):
        clock.advance(MINUTE)
        handle.refresh()
    assert run_everything_due(queue) == periodic_keys(1, 3)
    clock.advance(30 * SECOND)
    broken.clear()
    handle.refresh()
    assert run_everything_due(queue) == periodic_keys(2)


def test_a_payload_that_cannot_be_encoded_is_like_one_that_cannot_be_made(
    queue: QueueFace, caplog: pytest.LogCaptureFixture
) -> None:
    queue.cron.install_periodic_tick(
        "reports", MINUTE, lambda at: object() if at == START + MINUTE else "fine"
    )
    assert_holds(queue, periodic_keys(2, 3, 4))
    assert len(logged(caplog)) == 1


def test_a_failed_run_is_logged_and_repeated(
    queue: QueueFace, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [ValueError("not now"), ValueError("not now either")]

    def generate(now: datetime) -> list[CronMessage[str]]:
        if failures:
            raise failures.pop()
        return [CronMessage("new", START + HOUR)]

    queue.cron.install_tick(ONE, "reports", [CronMessage("old", START + HOUR)])
    handle = queue.cron.install(ONE, "reports", 5 * SECOND, generate)
    assert "'reports'" in logged(caplog)[0]
    handle.refresh()
    assert len(logged(caplog)) == 2
    assert snapshot(queue, keys([START + HOUR])[0]).payload == "old"
    clock.advance(5 * SECOND)
    # The first run that succeeds replaces, whichever it is.
    eventually(lambda: snapshot(queue, keys([START + HOUR])[0]).payload == "new")
    assert handle.active


def test_what_generate_returns_is_checked(
    queue: QueueFace, caplog: pytest.LogCaptureFixture
) -> None:
    nonsense = cast("list[CronMessage[str]]", [("a", START)])
    handle = queue.cron.install(ONE, "reports", HOUR, lambda _: nonsense)
    assert len(logged(caplog)) == 1
    assert handle.active
    assert queue.cron.list() == []

"""The options of every schedule: a jitter, an end, headers."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from duequeue import ConfigHash, CronMessage, Crontab, Daily, Every, ManualClock, Misfire
from duequeue.contract.cron_phrases import (
    EVERY_MINUTE,
    ONE,
    after,
    assert_holds,
    key_of,
    keys,
    periodic_keys,
    run_everything_due,
)
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import DAY, HOUR, MINUTE, SECOND, claim, snapshot


def delays(queue: QueueFace, *minutes: int, prefix: str = "reports") -> list[timedelta]:
    """Return by how much the ticks of a cron that runs every minute are delayed."""
    due = [snapshot(queue, key).due_at for key in periodic_keys(*minutes, prefix=prefix)]
    return [late - at for late, at in zip(due, after(*minutes), strict=True)]


def test_a_jitter_delays_each_tick_within_its_bounds(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_periodic_tick("reports", MINUTE, "hello", jitter=30 * SECOND)
    found = []
    for minute in range(1, 20):
        found += delays(queue, minute)
        clock.advance(MINUTE)
    assert all(timedelta(0) <= each <= 30 * SECOND for each in found)
    assert len(set(found)) > 10


def test_every_node_finds_the_same_delays(open_queue: OpenQueue) -> None:
    found = []
    for name in ("one", "two"):
        queue = open_queue(name)
        queue.cron.install_periodic_tick("reports", MINUTE, "hello", jitter=HOUR)
        found.append(delays(queue, 1, 2, 3, 4))
        other = queue.cron.install_periodic_tick("others", MINUTE, "hello", jitter=HOUR)
        assert delays(queue, 1, 2, 3, 4, prefix="others") != found[0]
        assert other.active
    assert found[0] == found[1]


def test_a_jitter_changes_neither_key_nor_hash_nor_next_tick(queue: QueueFace) -> None:
    queue.cron.install_periodic_tick("reports", MINUTE, "hello")
    queue.cron.install_periodic_tick("reports", MINUTE, "hello", jitter=HOUR)
    assert_holds(queue, periodic_keys(1, 2, 3, 4))
    assert any(delays(queue, 1, 2, 3, 4))
    (status,) = queue.cron.list()
    assert (status.generation, status.config_hash) == (1, EVERY_MINUTE)
    assert status.next_tick == START + MINUTE


def test_there_are_no_ticks_after_the_end(queue: QueueFace, clock: ManualClock) -> None:
    handle = queue.cron.install_periodic_tick("reports", MINUTE, "hello", until=START + 6 * MINUTE)
    (status,) = queue.cron.list()
    assert status.schedule == "every minute until 2026-03-01T12:06:00.000Z"
    assert_holds(queue, keys(after(1, 2, 3, 4), status.config_hash))
    ran = []
    for _ in range(12):
        clock.advance(MINUTE)
        ran += run_everything_due(queue)
    assert ran == keys(after(1, 2, 3, 4, 5, 6), status.config_hash)
    (status,) = queue.cron.list()
    assert (status.next_tick, status.last_tick) == (None, START + 6 * MINUTE)
    handle.refresh()
    clock.advance(DAY)
    assert_holds(queue, [])


def test_an_end_between_two_ticks(queue: QueueFace) -> None:
    schedule = Daily(["07:00", "19:00"], horizon=10 * DAY)
    queue.cron.install_daily_schedule("reports", schedule, 1, until=START + DAY)
    expected = [datetime(2026, 3, 1, 19, tzinfo=UTC), datetime(2026, 3, 2, 7, tzinfo=UTC)]
    assert_holds(queue, keys(expected, queue.cron.list()[0].config_hash))


def test_an_end_in_the_past_leaves_no_tick(queue: QueueFace) -> None:
    queue.cron.install_periodic_tick("reports", MINUTE, "hello", until=START - DAY)
    assert_holds(queue, [])
    assert queue.cron.list()[0].next_tick is None


def test_another_end_is_another_configuration(queue: QueueFace) -> None:
    older = queue.cron.install_periodic_tick("reports", MINUTE, "hello")
    queue.cron.install_periodic_tick("reports", MINUTE, "hello", until=START + 2 * MINUTE)
    (status,) = queue.cron.list()
    assert status.generation == 2
    assert_holds(queue, keys(after(1, 2), status.config_hash))
    older.refresh()
    assert not older.active


def test_nothing_after_the_end_is_missed(open_queue: OpenQueue, clock: ManualClock) -> None:
    queue = open_queue()
    until, policy = START + 6 * MINUTE, Misfire.fire_all(100)
    for _ in range(2):
        queue.cron.install_periodic_tick(
            "reports", MINUTE, "hello", until=until, misfire=policy
        ).close()
        clock.advance(HOUR)
    expected = keys(after(1, 2, 3, 4, 5, 6), queue.cron.list()[0].config_hash)
    assert run_everything_due(queue) == expected


def test_headers_go_with_every_tick(queue: QueueFace, clock: ManualClock) -> None:
    headers = {"tenant": "seven", "trace": "abc"}
    queue.cron.install_periodic_tick("reports", MINUTE, "hello", headers=headers)
    for _ in range(8):
        clock.advance(MINUTE)
        delivery = claim(queue)
        assert delivery.headers == headers
        assert delivery.ack()


def test_headers_of_single_ticks(queue: QueueFace) -> None:
    queue.cron.install_tick(
        ONE,
        "reports",
        [CronMessage("a", START), CronMessage("b", START + SECOND, None, {"tenant": "seven"})],
    )
    assert snapshot(queue, key_of(START)).headers == {}
    assert snapshot(queue, key_of(START + SECOND)).headers == {"tenant": "seven"}


def test_weekdays_and_zones_in_the_queue(queue: QueueFace) -> None:
    # START is a Sunday.
    schedule = Daily(
        ["07:00"], ZoneInfo("Europe/Berlin"), horizon=9 * DAY, weekdays=["mon", "friday"]
    )
    queue.cron.install_daily_schedule("reports", schedule, 1)
    expected = [datetime(2026, 3, day, 6, tzinfo=UTC) for day in (2, 6, 9)]
    assert_holds(queue, keys(expected, ConfigHash.of(schedule)))
    assert queue.cron.list()[0].schedule == "daily at 07:00 on mon, fri in Europe/Berlin"


def test_seconds_in_the_queue(queue: QueueFace, clock: ManualClock) -> None:
    crontab = Crontab("*/20 * * * * *", ZoneInfo("Asia/Tokyo"))
    queue.cron.install_expression("reports", crontab, 1)
    expected = [START + number * 20 * SECOND for number in range(1, 9)]
    assert_holds(queue, keys(expected[:4], ConfigHash.of(crontab)))
    ran = []
    for _ in range(8):
        clock.advance(20 * SECOND)
        ran += run_everything_due(queue)
    assert ran == keys(expected, ConfigHash.of(crontab))


BAD_OPTIONS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a jitter that is a number": ({"jitter": 5}, TypeError, "jitter"),
    "a negative jitter": ({"jitter": -SECOND}, ValueError, "jitter"),
    "a naive end": ({"until": datetime(2026, 3, 1)}, ValueError, "until.*aware"),  # noqa: DTZ001 - on purpose
    "an end that is a duration": ({"until": HOUR}, TypeError, "until"),
    "headers of numbers": ({"headers": {"a": 1}}, TypeError, "headers"),
    "headers that are a text": ({"headers": "a"}, TypeError, "headers"),
    "an option that does not exist": ({"jiter": HOUR}, TypeError, "jiter"),
}


@pytest.mark.argument_checks
@pytest.mark.parametrize(("options", "error", "words"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_options_are_refused(
    queue: QueueFace, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    given = cast("Any", options)
    installs: list[Callable[[], object]] = [
        lambda: queue.cron.install_periodic_tick("reports", MINUTE, 1, **given),
        lambda: queue.cron.install_daily_schedule("reports", Daily(["07:00"]), 1, **given),
        lambda: queue.cron.install_expression("reports", Crontab("@daily"), 1, **given),
        lambda: queue.cron.install_schedule("reports", Every(MINUTE), 1, **given),
    ]
    for install in installs:
        with pytest.raises(error, match=words):
            install()
    assert (queue.stats().total, queue.cron.list()) == (0, [])

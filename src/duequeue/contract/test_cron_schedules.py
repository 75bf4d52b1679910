"""Crons by schedule: which ticks are there, from far below a second to far beyond a lifetime."""

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from functools import partial

import pytest

from duequeue import (
    ConfigHash,
    CronMessage,
    Crontab,
    Daily,
    Every,
    ManualClock,
    Misfire,
    Schedule,
)
from duequeue.contract.cron_phrases import (
    EVERY_MINUTE,
    ONE,
    after,
    assert_holds,
    eventually,
    first_after,
    key_of,
    keys,
    messages,
    periodic_keys,
    run_everything_due,
)
from duequeue.contract.faces import CronHandleFace, QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import DAY, HOUR, MILLISECOND, MINUTE, SECOND, claim, snapshot


def test_four_periodic_ticks_are_kept_ahead(queue: QueueFace, clock: ManualClock) -> None:
    handle = queue.cron.install_periodic_tick("reports", MINUTE, "hello")
    assert_holds(queue, periodic_keys(1, 2, 3, 4))
    assert handle.prefix == "reports"
    for minute in range(1, 10):
        clock.advance(MINUTE)
        eventually(partial(queue.contains, periodic_keys(minute + 4)[0]))
        assert run_everything_due(queue) == periodic_keys(minute)
    assert_holds(queue, periodic_keys(10, 11, 12, 13))


def test_a_tick_at_this_very_instant_is_over(queue: QueueFace, clock: ManualClock) -> None:
    clock.advance(MINUTE)
    queue.cron.install_periodic_tick("reports", MINUTE, "hello")
    assert_holds(queue, periodic_keys(2, 3, 4, 5))


@pytest.mark.parametrize(
    "period",
    [MILLISECOND, 7 * MILLISECOND, 333 * MILLISECOND, 1500 * MILLISECOND, 90 * MINUTE, 5000 * DAY],
    ids=str,
)
def test_periods_of_any_length(queue: QueueFace, clock: ManualClock, period: timedelta) -> None:
    handle = queue.cron.install_periodic_tick("reports", period, "hello")
    config_hash = ConfigHash.of(Every(period))
    expected = first_after(Every(period), START, 8)
    assert_holds(queue, keys(expected[:4], config_hash))
    clock.set(expected[3])
    handle.refresh()
    assert_holds(queue, keys(expected, config_hash))
    assert run_everything_due(queue) == keys(expected[:4], config_hash)


def test_there_are_no_ticks_after_the_year_9999(queue: QueueFace, clock: ManualClock) -> None:
    clock.set(datetime(9999, 12, 29, tzinfo=UTC))
    periodic = queue.cron.install_periodic_tick("reports", DAY, "hello")
    daily = queue.cron.install_daily_schedule("daily", Daily(["12:00"], horizon=2 * DAY), "hello")
    assert queue.stats().total == 2 + 2
    for handle in (periodic, daily):
        handle.refresh()
        assert handle.active


def test_a_daily_schedule_fills_its_horizon(queue: QueueFace, clock: ManualClock) -> None:
    schedule = Daily(["18:00", time(7), "07:00"], horizon=2 * DAY)
    handle = queue.cron.install_daily_schedule("reports", schedule, "hello")
    config_hash = ConfigHash.of(schedule)
    expected = first_after(schedule, START, 5)
    assert_holds(queue, keys(expected[:4], config_hash))
    clock.advance(6 * HOUR)
    handle.refresh()
    assert_holds(queue, keys(expected, config_hash))


def test_a_daily_schedule_has_at_least_one_tick(queue: QueueFace) -> None:
    schedule = Daily(["11:00"], horizon=MINUTE)
    queue.cron.install_daily_schedule("reports", schedule, "hello")
    assert_holds(queue, keys([START + 23 * HOUR], ConfigHash.of(schedule)))


def test_a_daily_schedule_with_a_tick_every_minute(queue: QueueFace) -> None:
    times = [time(hour, minute) for hour in range(24) for minute in range(60)]
    queue.cron.install_daily_schedule("reports", Daily(times, horizon=DAY), "hello")
    assert queue.stats().future == 24 * 60


def test_no_day_is_lost_when_the_interval_is_longer_than_the_horizon(
    queue: QueueFace, clock: ManualClock
) -> None:
    schedule = Daily(["13:00"], horizon=MINUTE, interval=1000 * DAY)
    queue.cron.install_daily_schedule("reports", schedule, "hello")
    for tick in first_after(schedule, START, 5):
        key = key_of(tick, ConfigHash.of(schedule))
        eventually(partial(queue.contains, key))
        clock.set(tick)
        assert run_everything_due(queue) == [key]


CLOCK_CHANGES: dict[str, tuple[Schedule, datetime, list[str]]] = {
    "skipped": (
        Daily(["02:30", "03:15"], "Europe/Berlin", horizon=timedelta(hours=12)),
        datetime(2026, 3, 28, 22, tzinfo=UTC),
        ["2026-03-29T01:00:00.000Z", "2026-03-29T01:15:00.000Z"],
    ),
    "repeated": (
        Daily(["02:30", "03:15"], "Europe/Berlin", horizon=timedelta(hours=12)),
        datetime(2026, 10, 24, 22, tzinfo=UTC),
        ["2026-10-25T00:30:00.000Z", "2026-10-25T02:15:00.000Z"],
    ),
    "half an hour skipped": (
        Daily(["02:15"], "Australia/Lord_Howe", horizon=timedelta(hours=12)),
        datetime(2026, 10, 3, 10, tzinfo=UTC),
        ["2026-10-03T15:30:00.000Z"],
    ),
    "midnight skipped": (
        Daily(["00:00"], "Africa/Cairo", horizon=timedelta(hours=12)),
        datetime(2026, 4, 23, 12, tzinfo=UTC),
        ["2026-04-23T22:00:00.000Z"],
    ),
    "midnight skipped in the past": (
        Daily(["00:00", "00:30"], "America/Sao_Paulo", horizon=timedelta(hours=12)),
        datetime(2017, 10, 14, 18, tzinfo=UTC),
        ["2017-10-15T03:00:00.000Z"],
    ),
    "an expression, skipped": (
        Crontab("*/30 2 * * *", "Europe/Berlin"),
        datetime(2026, 3, 27, 22, tzinfo=UTC),
        [
            "2026-03-28T01:00:00.000Z",
            "2026-03-28T01:30:00.000Z",
            "2026-03-29T01:00:00.000Z",
            "2026-03-30T00:00:00.000Z",
        ],
    ),
    "the end of the month": (
        Crontab("0 0 L * *"),
        datetime(2028, 1, 15, tzinfo=UTC),
        [f"2028-{day}T00:00:00.000Z" for day in ("01-31", "02-29", "03-31", "04-30")],
    ),
    "leap days": (
        Crontab("0 12 29 2 *"),
        datetime(2026, 1, 1, tzinfo=UTC),
        [f"{year}-02-29T12:00:00.000Z" for year in (2028, 2032, 2036, 2040)],
    ),
}


@pytest.mark.parametrize(("schedule", "now", "ticks"), CLOCK_CHANGES.values(), ids=CLOCK_CHANGES)
def test_the_calendar_in_the_queue(
    queue: QueueFace, clock: ManualClock, schedule: Schedule, now: datetime, ticks: list[str]
) -> None:
    clock.set(now)
    if isinstance(schedule, Daily):
        queue.cron.install_daily_schedule("reports", schedule, "hello")
    else:
        assert isinstance(schedule, Crontab)
        queue.cron.install_expression("reports", schedule, "hello")
    assert_holds(queue, [f"reports/{ConfigHash.of(schedule)}/{tick}" for tick in ticks])


def test_the_payload_may_be_a_function_of_the_tick(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_expression("reports", Crontab("*/5 * * * *"), lambda at: at.minute)
    clock.advance(5 * MINUTE)
    assert claim(queue).payload == 5


def test_a_zone_change_moves_the_ticks(open_queue: OpenQueue) -> None:
    first, second = open_queue(), open_queue()
    berlin, lima = Daily(["19:00"], "Europe/Berlin"), Daily(["19:00"], "America/Lima")
    first.cron.install_daily_schedule("reports", berlin, "hello")
    second.cron.install_daily_schedule("reports", lima, "hello")
    assert_holds(first, keys(first_after(lima, START, 2), ConfigHash.of(lima)))


def test_another_name_of_the_same_zone_moves_nothing(queue: QueueFace) -> None:
    queue.cron.install_daily_schedule("reports", Daily(["19:00"], "Asia/Calcutta"), "hello")
    queue.cron.install_daily_schedule("reports", Daily(["19:00"], "Asia/Kolkata"), "hello")
    (status,) = queue.cron.list()
    assert (status.generation, status.schedule) == (1, "daily at 19:00 in Asia/Kolkata")


def test_the_users_own_function(queue: QueueFace, clock: ManualClock) -> None:
    asked: list[datetime] = []

    def generate(now: datetime) -> list[CronMessage[str]]:
        asked.append(now)
        return [CronMessage(f"asked {len(asked)} times", START + DAY, START + HOUR)]

    handle = queue.cron.install(ONE, "reports", 10 * MINUTE, generate)
    assert asked == [START]
    clock.advance(10 * MINUTE)
    eventually(lambda: len(asked) == 2)
    handle.refresh()
    assert asked[1:] == [START + 10 * MINUTE] * 2
    # Only the first run replaces.
    assert snapshot(queue, key_of(START + DAY)).payload == "asked 1 times"


def test_an_installation_replaces_what_an_earlier_one_left(open_queue: OpenQueue) -> None:
    with open_queue("another"):
        queue = open_queue()
        queue.cron.install_periodic_tick("reports", MINUTE, "old").close()
        queue.cron.install_periodic_tick("reports", MINUTE, "new")
        assert [snapshot(queue, key).payload for key in periodic_keys(1, 4)] == ["new", "new"]


def test_a_later_run_leaves_the_payloads_of_an_earlier_one(open_queue: OpenQueue) -> None:
    first, second = open_queue(), open_queue()
    handle = first.cron.install_periodic_tick("reports", MINUTE, "old")
    second.cron.install_periodic_tick("reports", MINUTE, "new")
    handle.refresh()
    assert snapshot(first, periodic_keys(1)[0]).payload == "new"


def test_what_was_known_to_have_run_stays_so_on_a_lagging_node(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    ahead = ManualClock(START + 5 * MINUTE)
    fast, slow = open_queue(clock=ahead), open_queue()
    fast.cron.install_periodic_tick("reports", MINUTE, "hello")
    ahead.advance(5 * MINUTE)
    ran = run_everything_due(fast)
    assert ran == periodic_keys(6, 7, 8, 9)
    handle = slow.cron.install_periodic_tick("reports", MINUTE, "hello")
    for _ in range(20):
        clock.advance(MINUTE)
        handle.refresh()
        ran += run_everything_due(slow)
    assert len(ran) == len(set(ran))


Install = Callable[[QueueFace, Misfire | None], CronHandleFace]

MISFIRES: dict[str, tuple[Misfire | None, list[int]]] = {
    "by default": (None, []),
    "skip": (Misfire.skip(), []),
    "fire_once": (Misfire.fire_once(), [10]),
    "fire_all": (Misfire.fire_all(3), [8, 9, 10]),
    "fire_all with room": (Misfire.fire_all(1000), [5, 6, 7, 8, 9, 10]),
}


@pytest.mark.parametrize(("misfire", "made_up"), MISFIRES.values(), ids=MISFIRES)
def test_misfires_across_a_restart(
    open_queue: OpenQueue, clock: ManualClock, misfire: Misfire | None, made_up: list[int]
) -> None:
    with open_queue("another"):
        with open_queue() as queue:
            queue.cron.install_periodic_tick("reports", MINUTE, "hello", misfire=misfire)
        clock.advance(10 * MINUTE + SECOND)
        queue, late = open_queue(), open_queue()
        queue.cron.install_periodic_tick("reports", MINUTE, "hello", misfire=misfire)
        late.cron.install_periodic_tick("reports", MINUTE, "hello", misfire=misfire)
        # What was in the queue already comes late, in any case.
        assert run_everything_due(queue) == periodic_keys(1, 2, 3, 4, *made_up)
        late.cron.install_periodic_tick("reports", MINUTE, "hello", misfire=misfire)
        assert run_everything_due(queue) == []
        assert_holds(queue, periodic_keys(11, 12, 13, 14))


def test_misfires_of_nodes_whose_clocks_disagree(open_queue: OpenQueue, clock: ManualClock) -> None:
    with open_queue("another"):
        with open_queue() as queue:
            queue.cron.install_periodic_tick("reports", MINUTE, "hello")
            run_everything_due(queue)
        clock.advance(DAY + 59 * SECOND)
        for seconds in (0, -30, 90, -90, 45):
            node = open_queue(clock=ManualClock(clock.now() + timedelta(seconds=seconds)))
            once = Misfire.fire_once()
            node.cron.install_periodic_tick("reports", MINUTE, "hello", misfire=once)
        assert run_everything_due(open_queue()) == periodic_keys(1, 2, 3, 4, 24 * 60)


def test_missed_ticks_of_a_long_outage_are_found_at_once(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    with open_queue("another"):
        period, policy = 10 * MILLISECOND, Misfire.fire_all(5)
        with open_queue() as queue:
            queue.cron.install_periodic_tick("reports", period, "hello", misfire=policy)
        clock.advance(3650 * DAY)
        queue = open_queue()
        queue.cron.install_periodic_tick("reports", period, "hello", misfire=policy)
        missed = [clock.now() - number * period for number in (4, 3, 2, 1, 0)]
        assert run_everything_due(queue)[4:] == keys(missed, ConfigHash.of(Every(period)))


def test_a_first_installation_has_missed_nothing(queue: QueueFace) -> None:
    everything = Misfire.fire_all(100)
    queue.cron.install_periodic_tick("reports", MINUTE, "hello", misfire=everything)
    assert_holds(queue, periodic_keys(1, 2, 3, 4))


@pytest.mark.parametrize("change", ["another configuration", "uninstalled"])
def test_a_change_of_configuration_has_missed_nothing(
    open_queue: OpenQueue, clock: ManualClock, change: str
) -> None:
    everything = Misfire.fire_all(100)
    queue = open_queue()
    queue.cron.install_periodic_tick("reports", MINUTE, "hello", misfire=everything).close()
    if change == "uninstalled":
        queue.cron.uninstall_tick(EVERY_MINUTE, "reports")
    else:
        queue.cron.install_tick(ONE, "reports", messages(1))
    clock.advance(HOUR)
    queue.cron.install_periodic_tick("reports", MINUTE, "hello", misfire=everything)
    assert_holds(queue, periodic_keys(61, 62, 63, 64))


def test_a_tick_in_the_queue_is_delivered_late_and_not_twice(
    queue: QueueFace, clock: ManualClock
) -> None:
    handle = queue.cron.install_periodic_tick(
        "reports", MINUTE, "hello", misfire=Misfire.fire_all(10)
    )
    for _ in range(30):
        clock.advance(MINUTE)
        handle.refresh()
    assert run_everything_due(queue) == periodic_keys(*range(1, 31))
    assert after(31)[0] == queue.cron.list()[0].next_tick

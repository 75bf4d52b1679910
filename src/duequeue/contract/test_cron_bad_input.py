"""Nonsense is refused by name, with the way out, before anything is stored."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from duequeue import ConfigHash, CronMessage, Crontab, Daily, Misfire, PayloadTooLarge
from duequeue.contract.cron_phrases import ONE, messages
from duequeue.contract.faces import QueueFace
from duequeue.contract.phrases import DAY, HOUR, MINUTE
from duequeue.message import MAX_PAYLOAD_BYTES
from duequeue.schedules.tick import MAX_PREFIX_LENGTH

pytestmark = pytest.mark.argument_checks

Call = Callable[[QueueFace], object]
anything = cast("Any", object())

BAD_PREFIXES = ["", "a\0b", "\ud800", "p" * (MAX_PREFIX_LENGTH + 1)]

PREFIX_CALLS: dict[str, Callable[[QueueFace, str], object]] = {
    "install_tick": lambda queue, prefix: queue.cron.install_tick(ONE, prefix, messages(1)),
    "uninstall_tick": lambda queue, prefix: queue.cron.uninstall_tick(ONE, prefix),
    "install": lambda queue, prefix: queue.cron.install(ONE, prefix, HOUR, lambda _: messages(1)),
    "daily": lambda queue, prefix: queue.cron.install_daily_schedule(prefix, Daily(["07:00"]), 1),
    "periodic": lambda queue, prefix: queue.cron.install_periodic_tick(prefix, MINUTE, 1),
    "expression": lambda queue, prefix: queue.cron.install_expression(
        prefix, Crontab("* * * * *"), 1
    ),
    "any schedule": lambda queue, prefix: queue.cron.install_schedule(prefix, Crontab("@daily"), 1),
    "run_now": lambda queue, prefix: queue.cron.run_now(prefix),
    "pause": lambda queue, prefix: queue.cron.pause(prefix),
    "resume": lambda queue, prefix: queue.cron.resume(prefix),
}

BAD_CALLS: dict[str, tuple[type[Exception], str, Call]] = {
    "a hash that is a str": (
        TypeError,
        "config_hash",
        lambda queue: queue.cron.install_tick(cast("Any", "one"), "reports", messages(1)),
    ),
    "a hash that is a str, to uninstall": (
        TypeError,
        "config_hash",
        lambda queue: queue.cron.uninstall_tick(cast("Any", "one"), "reports"),
    ),
    "a hash with a slash": (
        ValueError,
        "config_hash.*'/'",
        lambda queue: queue.cron.install_tick(ConfigHash("a/b"), "reports", messages(1)),
    ),
    "messages of another kind": (
        TypeError,
        "messages",
        lambda queue: queue.cron.install_tick(ONE, "reports", [*messages(1), anything]),
    ),
    "a naive instant": (
        ValueError,
        "at must be timezone-aware",
        lambda queue: queue.cron.install_tick(
            ONE,
            "reports",
            [CronMessage(1, datetime(2026, 3, 1))],  # noqa: DTZ001 - on purpose
        ),
    ),
    "a payload that cannot be encoded": (
        TypeError,
        "object",
        lambda queue: queue.cron.install_tick(ONE, "reports", messages(1, payload=object())),
    ),
    "a payload that is too large": (
        PayloadTooLarge,
        "limit",
        lambda queue: queue.cron.install_periodic_tick("reports", MINUTE, "x" * MAX_PAYLOAD_BYTES),
    ),
    "a value that cannot be encoded": (
        TypeError,
        "object",
        lambda queue: queue.cron.install_periodic_tick("reports", MINUTE, object()),
    ),
    "no period": (
        ValueError,
        "period",
        lambda queue: queue.cron.install_periodic_tick("reports", timedelta(0), 1),
    ),
    "a negative period": (
        ValueError,
        "period",
        lambda queue: queue.cron.install_periodic_tick("reports", -MINUTE, 1),
    ),
    "a period below a millisecond": (
        ValueError,
        "period",
        lambda queue: queue.cron.install_periodic_tick("reports", timedelta(microseconds=999), 1),
    ),
    "a period between milliseconds": (
        ValueError,
        "period.*whole number",
        lambda queue: queue.cron.install_periodic_tick("reports", timedelta(microseconds=1500), 1),
    ),
    "a period that is a number": (
        TypeError,
        "period",
        lambda queue: queue.cron.install_periodic_tick("reports", cast("Any", 60), 1),
    ),
    "no interval": (
        ValueError,
        "interval",
        lambda queue: queue.cron.install(ONE, "reports", timedelta(0), lambda _: []),
    ),
    "nothing to call": (
        TypeError,
        "generate",
        lambda queue: queue.cron.install(ONE, "reports", HOUR, anything),
    ),
    "an unknown zone": (
        ValueError,
        "did you mean 'Europe/Berlin'",
        lambda queue: queue.cron.install_daily_schedule(
            "reports", Daily(["07:00"], "Europe/Berlim"), 1
        ),
    ),
    "a zone for an expression": (
        ValueError,
        "did you mean 'Asia/Tokyo'",
        lambda queue: queue.cron.install_expression("reports", Crontab("* * * * *", "tokyo"), 1),
    ),
    "no times": (
        ValueError,
        "times",
        lambda queue: queue.cron.install_daily_schedule("reports", Daily([]), 1),
    ),
    "a time that is none": (
        ValueError,
        "times.*25:00",
        lambda queue: queue.cron.install_daily_schedule("reports", Daily(["25:00"]), 1),
    ),
    "no horizon": (
        ValueError,
        "horizon",
        lambda queue: queue.cron.install_daily_schedule("r", Daily(["07:00"], "UTC", -DAY), 1),
    ),
    "a bad hour": (
        ValueError,
        "bad hour '24': '24' is not within 0-23",
        lambda queue: queue.cron.install_expression("reports", Crontab("0 24 * * *"), 1),
    ),
    "a bad day of the week": (
        ValueError,
        "bad day-of-week 'MOM'",
        lambda queue: queue.cron.install_expression("reports", Crontab("0 0 * * MOM"), 1),
    ),
    "a day that never comes": (
        ValueError,
        "never fires",
        lambda queue: queue.cron.install_expression("reports", Crontab("0 0 30 2 *"), 1),
    ),
    "a bare expression": (
        TypeError,
        "crontab",
        lambda queue: queue.cron.install_expression("reports", cast("Any", "* * * * *"), 1),
    ),
    "a schedule of another kind": (
        TypeError,
        "schedule",
        lambda queue: queue.cron.install_daily_schedule(
            "reports", cast("Any", Crontab("* * * * *")), 1
        ),
    ),
    "a misfire policy by name": (
        TypeError,
        "misfire",
        lambda queue: queue.cron.install_periodic_tick(
            "reports", MINUTE, 1, misfire=cast("Any", "skip")
        ),
    ),
    "a misfire policy without a bound": (
        ValueError,
        "limit",
        lambda queue: queue.cron.install_periodic_tick(
            "reports", MINUTE, 1, misfire=Misfire.fire_all(0)
        ),
    ),
}


@pytest.mark.parametrize("prefix", BAD_PREFIXES, ids=["empty", "NUL", "surrogate", "long"])
@pytest.mark.parametrize("call", PREFIX_CALLS.values(), ids=PREFIX_CALLS)
def test_a_bad_prefix_is_refused(
    queue: QueueFace, call: Callable[[QueueFace, str], object], prefix: str
) -> None:
    with pytest.raises(ValueError, match="prefix"):
        call(queue, prefix)
    assert_untouched(queue)


@pytest.mark.parametrize("call", PREFIX_CALLS.values(), ids=PREFIX_CALLS)
def test_a_prefix_is_text(queue: QueueFace, call: Callable[[QueueFace, Any], object]) -> None:
    with pytest.raises(TypeError, match="prefix"):
        call(queue, 7)
    assert_untouched(queue)


@pytest.mark.parametrize(("error", "words", "call"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_bad_arguments_are_refused(
    queue: QueueFace, error: type[Exception], words: str, call: Call
) -> None:
    with pytest.raises(error, match=words):
        call(queue)
    assert_untouched(queue)


def assert_untouched(queue: QueueFace) -> None:
    assert queue.stats().total == 0
    assert queue.cron.list() == []

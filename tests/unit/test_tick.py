"""Tick keys are read back as they were written, and a cron message knows when it is due."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duequeue.message import checked_key
from duequeue.schedules.tick import (
    MAX_PREFIX_LENGTH,
    ConfigHash,
    CronMessage,
    checked_prefix,
    parse_tick_key,
    tick_key,
)

SEVEN = datetime(2026, 11, 15, 7, tzinfo=UTC)
V1 = ConfigHash("v1")


def test_prefix_hash_and_time() -> None:
    assert tick_key("reports/daily", V1, SEVEN) == "reports/daily/v1/2026-11-15T07:00:00.000Z"


def test_the_time_is_utc_floored_to_the_millisecond() -> None:
    given_at = datetime(2026, 11, 15, 9, 0, 0, 1999, tzinfo=timezone(timedelta(hours=2)))
    at = CronMessage("hello", given_at).at
    assert tick_key("p", V1, at) == "p/v1/2026-11-15T07:00:00.001Z"


def test_the_longest_parts_fill_a_key_exactly() -> None:
    key = tick_key("p" * MAX_PREFIX_LENGTH, ConfigHash("h" * 64), SEVEN)
    assert len(checked_key(key)) == 200


@pytest.mark.parametrize(
    ("prefix", "reason"),
    [
        ("", "1 to 110 characters, not 0"),
        ("p" * 111, "1 to 110 characters, not 111"),
        ("a\0b", "must not contain NUL"),
        ("\ud800", "not valid Unicode"),
    ],
)
def test_what_no_prefix_may_be(prefix: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"prefix .*{reason}"):
        checked_prefix(prefix)


@pytest.mark.parametrize(
    "prefix", ["reports", "reports/daily", "reports/v1", "/", "a//b", "a/", "\n"]
)
def test_a_prefix_with_slashes_is_read_back(prefix: str) -> None:
    assert parse_tick_key(tick_key(prefix, V1, SEVEN)) == (prefix, V1, SEVEN)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "order-1",
        "p/v1",
        "p/v1/2026-11-15",
        "/v1/2026-11-15T07:00:00.000Z",
        "p//2026-11-15T07:00:00.000Z",
        "v1/2026-11-15T07:00:00.000Z",
        "p/v1/2026-13-15T07:00:00.000Z",
        "p/v1/2026-11-15T07:00:00.000Z ",
        "p/v1/2026-11-15T07:00:00.000+00:00",
    ],
)
def test_other_keys_are_no_tick_keys(key: str) -> None:
    with pytest.raises(ValueError, match=r"key|month"):
        parse_tick_key(key)


TEXTS = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=64
)
INSTANTS = st.datetimes(timezones=st.just(UTC))


@given(TEXTS, TEXTS.filter(lambda text: "/" not in text), INSTANTS)
def test_every_key_is_read_back(prefix: str, text: str, instant: datetime) -> None:
    key = parse_tick_key(tick_key(prefix, ConfigHash(text), instant))
    assert (key.prefix, key.config_hash) == (prefix, ConfigHash(text))
    assert timedelta(0) <= instant - key.at < timedelta(milliseconds=1)


@given(INSTANTS, INSTANTS)
def test_keys_sort_by_time(one: datetime, other: datetime) -> None:
    earlier, later = sorted((one, other))
    assert tick_key("p", V1, earlier) <= tick_key("p", V1, later)


def test_a_cron_message_is_due_at_its_tick() -> None:
    message = CronMessage("hello", SEVEN + timedelta(microseconds=999))
    assert message.at == message.due_at == SEVEN
    assert message.deliver_at is None


def test_a_cron_message_may_be_delivered_at_another_time() -> None:
    later = SEVEN + timedelta(hours=1)
    message = CronMessage("hello", SEVEN, later + timedelta(microseconds=999))
    assert (message.at, message.deliver_at, message.due_at) == (SEVEN, later, later)


@pytest.mark.parametrize("naive", ["at", "deliver_at"])
def test_a_cron_message_has_aware_instants(naive: str) -> None:
    instants: Any = {"at": SEVEN, "deliver_at": SEVEN} | {naive: SEVEN.replace(tzinfo=None)}
    with pytest.raises(ValueError, match=f"{naive} must be timezone-aware"):
        CronMessage("hello", **instants)


def test_an_instant_before_the_first_year() -> None:
    first = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
    with pytest.raises(ValueError, match="at lies outside the years 1 to 9999"):
        CronMessage("hello", first)

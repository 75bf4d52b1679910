"""The sentences of a report, in the singular and the plural."""

from datetime import UTC, datetime, timedelta
from typing import Any

from duequeue.pipeline.progress import counted
from duequeue.pipeline.reporting.words import (
    Expected,
    Reason,
    expectations,
    figures,
    headline,
    outlook,
    reasons,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def total(settled: int, *, buried: int = 0, redelivered: int = 0) -> dict[str, Any]:
    late = {"late_p50": 2, "late_p99": 30, "late_max": 4000}
    return {"settled": settled, "buried": buried, "redelivered": redelivered, **late}


def queue(name: str, buried: int = 0) -> dict[str, Any]:
    return {"queue": name, "buried": buried}


def test_one_is_singular() -> None:
    assert [counted(number, "row") for number in (0, 1, 2, 1000)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "1,000 rows",
    ]


def test_a_single_message() -> None:
    assert headline(total(1), [queue("orders")]) == (
        "1 message in 1 queue was settled. It was delivered 4.0 s after its due time. "
        "Nothing went wrong: no message was delivered more than once, and none was buried."
    )


def test_many_messages() -> None:
    assert headline(total(2000, redelivered=3), [queue("orders"), queue("bills")]) == (
        "2,000 messages in 2 queues were settled. Half of them were delivered within 2 ms of their "
        "due time, and 99% within 30 ms; the latest one waited 4.0 s. "
        "No message was buried, but 3 had to be delivered more than once."
    )


def test_burials_name_the_worst_queue() -> None:
    queues = [queue("orders", 2), queue("bills", 5)]
    assert headline(total(9, buried=7, redelivered=1), queues).endswith(
        " 7 were buried, 5 of them in bills, and 1 had to be delivered more than once."
    )
    assert headline(total(9, buried=1), [queue("orders"), queue("bills", 1)]).endswith(
        " 1 was buried, in bills."
    )
    assert headline(total(9, buried=2), [queue("orders", 2)]).endswith(" 2 were buried.")


def test_the_outlook() -> None:
    forecast = [
        {"at": NOON, "messages": 1, "overdue": 1},
        {"at": NOON + HOUR, "messages": 3, "overdue": 0},
    ]
    assert outlook(expectations(forecast), [{"at": NOON, "settled": 5}], HOUR) == (
        "4 messages fall due within 24 hours. The busiest hour, from 13:00 UTC, has 3. "
        "The busiest hour of this report settled 5."
    )
    assert outlook(Expected(1, 0, NOON, 1), [], HOUR) == (
        "1 message falls due within 24 hours. The busiest hour, from 12:00 UTC, has 1."
    )


def test_reasons_that_differ_in_numbers_are_one() -> None:
    def row(queue: str, reason: str, burials: int, hour: int) -> dict[str, Any]:
        last_at = NOON + hour * HOUR
        return {"queue": queue, "reason": reason, "burials": burials, "last_at": last_at}

    rows = [
        row("orders", "no order 17", 1, 2),
        row("orders", "no order 4", 1, 1),
        row("bills", "no order 9", 1, 3),
        row("orders", "too old", 5, 0),
    ]
    assert reasons(rows) == [
        Reason("orders", "too old", 5, NOON),
        Reason("orders", "no order 17", 2, NOON + 2 * HOUR),
        Reason("bills", "no order 9", 1, NOON + 3 * HOUR),
    ]


def test_the_handler_time_is_shown_if_it_is_known() -> None:
    found = {**total(9), "delivered": 9, "handling_p50": 7}
    expected = Expected(0, 0, None, 0)
    assert ("7 ms", "median handler time") in [each[:2] for each in figures(found, expected)]
    unknown = figures({**found, "handling_p50": None}, expected)
    assert "median handler time" not in [each[1] for each in unknown]

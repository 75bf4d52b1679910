"""The sentences of a report: how many, how late, what went wrong, what is to come."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from duequeue.instants import words_for
from duequeue.pipeline.progress import counted

Row: TypeAlias = Mapping[str, Any]

NOTHING = "\N{EN DASH}"


class Figure(NamedTuple):
    """An important number, its name, and whether it is bad news."""

    value: str
    name: str
    bad: bool = False


class Reason(NamedTuple):
    """Why messages of a queue were buried, how many there are, and when the last one was buried."""

    queue: str
    reason: str
    burials: int
    last_at: datetime


class Expected(NamedTuple):
    """The messages that are scheduled for the next 24 hours."""

    messages: int
    overdue: int
    busiest_at: datetime | None
    busiest: int


def span(millis: int | None) -> str:
    """Write a duration, given in milliseconds."""
    return NOTHING if millis is None else words_for(timedelta(milliseconds=millis))


def number(count: int) -> str:
    """Write a number with commas."""
    return f"{count:,}"


def share(part: int, whole: int) -> str:
    """Write a part of a whole in percent; only 0 and the whole become 0% and 100%."""
    if whole == 0:
        return NOTHING
    if part in {0, whole}:
        return "0%" if part == 0 else "100%"
    return f"{min(99.9, max(0.1, 100 * part / whole)):.1f}%"


def instant(at: datetime) -> str:
    """Write an instant to the minute."""
    return f"{at:%-d %b %Y, %H:%M} UTC"


def expectations(forecast: Sequence[Row]) -> Expected:
    """Sum up the forecast."""
    by_hour: dict[datetime, int] = {}
    for row in forecast:
        by_hour[row["at"]] = by_hour.get(row["at"], 0) + row["messages"]
    overdue = sum(row["overdue"] for row in forecast)
    busiest_at = max(by_hour, key=lambda at: by_hour[at], default=None)
    most = by_hour[busiest_at] if busiest_at else 0
    return Expected(sum(by_hour.values()), overdue, busiest_at, most)


def headline(total: Row, queues: Sequence[Row]) -> str:
    """Summarize the report in a few sentences."""
    settled = total["settled"]
    if not settled:
        return "No message was settled in this time by a queue that keeps its history."
    messages, places = counted(settled, "message"), counted(len(queues), "queue")
    said = [f"{messages} in {places} {_were(settled)} settled."]
    if total["late_max"] is not None:
        said.append(_lateness(total))
    return " ".join([*said, _trouble(total, queues)])


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _lateness(total: Row) -> str:
    if total["settled"] == 1:
        return f"It was delivered {span(total['late_max'])} after its due time."
    return (
        f"Half of them were delivered within {span(total['late_p50'])} of their due time, and 99% "
        f"within {span(total['late_p99'])}; the latest one waited {span(total['late_max'])}."
    )


def _trouble(total: Row, queues: Sequence[Row]) -> str:
    buried, again = total["buried"], total["redelivered"]
    if not buried and not again:
        return "Nothing went wrong: no message was delivered more than once, and none was buried."
    more_than_once = f"{number(again)} had to be delivered more than once"
    if not buried:
        return f"No message was buried, but {more_than_once}."
    said = f"{number(buried)} {_were(buried)} buried{_worst(buried, queues)}"
    return f"{said}, and {more_than_once}." if again else f"{said}."


def _worst(buried: int, queues: Sequence[Row]) -> str:
    """Name the queue with the most burials, if there are several queues."""
    if len(queues) == 1:
        return ""
    worst = max(queues, key=lambda row: row["buried"])
    part = "" if worst["buried"] == buried else f"{number(worst['buried'])} of them "
    return f", {part}in {worst['queue']}"


def reasons(rows: Sequence[Row]) -> list[Reason]:
    """Add up reasons that differ only in numbers, such as order numbers, and show the latest."""
    found: dict[tuple[str, str], Reason] = {}
    for row in sorted(rows, key=lambda row: row["last_at"]):
        alike = (row["queue"], re.sub(r"\d+", "0", row["reason"]))
        before = found[alike].burials if alike in found else 0
        found[alike] = Reason(row["queue"], row["reason"], before + row["burials"], row["last_at"])
    return sorted(found.values(), key=lambda reason: (-reason.burials, reason.queue))


def figures(total: Row, expected: Expected) -> list[Figure]:
    """Return the figures at the top of the page."""
    delivered, again = total["delivered"], total["redelivered"]
    handler_time = total["handling_p50"]
    return [
        Figure(number(total["settled"]), "settled"),
        Figure(span(total["late_p50"]), "median lateness"),
        Figure(span(total["late_p99"]), "99th percentile of lateness"),
        # Nobody knows it if all messages were polled without a consumer.
        *([] if handler_time is None else [Figure(span(handler_time), "median handler time")]),
        Figure(share(delivered - again, delivered), "settled at the first attempt"),
        Figure(number(total["buried"]), "buried", bad=total["buried"] > 0),
        Figure(number(expected.overdue), "overdue now", bad=expected.overdue > 0),
        Figure(number(expected.messages), "due within 24 hours"),
    ]


def outlook(expected: Expected, times: Sequence[Row], step: timedelta) -> str:
    """Describe the next 24 hours, and compare them with the hours of the report."""
    if not expected.messages or expected.busiest_at is None:
        return "Nothing is scheduled for the next 24 hours."
    fall = "falls" if expected.messages == 1 else "fall"
    said = (
        f"{counted(expected.messages, 'message')} {fall} due within 24 hours. The busiest hour, "
        f"from {expected.busiest_at:%H:%M} UTC, has {number(expected.busiest)}."
    )
    if step == timedelta(hours=1) and times:
        by_hour: dict[datetime, int] = {}
        for row in times:
            by_hour[row["at"]] = by_hour.get(row["at"], 0) + row["settled"]
        said += f" The busiest hour of this report settled {number(max(by_hour.values()))}."
    return said

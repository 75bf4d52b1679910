"""What a report says in words: how many, how late, what went wrong, what is to come."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from duequeue.instants import words_for

Row: TypeAlias = Mapping[str, Any]

NOTHING = "\N{EN DASH}"


class Figure(NamedTuple):
    """A number that tells much, what it is of, and whether it is to worry about."""

    value: str
    name: str
    bad: bool = False


class Expected(NamedTuple):
    """What is scheduled for the next hours."""

    messages: int
    overdue: int
    busiest_at: datetime | None
    busiest: int


def span(millis: int | None) -> str:
    """Write milliseconds in words."""
    return NOTHING if millis is None else words_for(timedelta(milliseconds=millis))


def number(count: int) -> str:
    """Write a count."""
    return f"{count:,}"


def share(part: int, whole: int) -> str:
    """Write a part of a whole, never rounded to all or nothing."""
    if whole == 0:
        return NOTHING
    if part in {0, whole}:
        return "0%" if part == 0 else "100%"
    return f"{min(99.9, max(0.1, 100 * part / whole)):.1f}%"


def instant(at: datetime) -> str:
    """Write an instant to the minute."""
    return f"{at:%-d %b %Y, %H:%M} UTC"


def expectations(forecast: Sequence[Row]) -> Expected:
    """Sum the hours to come up."""
    by_hour: dict[datetime, int] = {}
    for row in forecast:
        by_hour[row["at"]] = by_hour.get(row["at"], 0) + row["messages"]
    overdue = sum(row["overdue"] for row in forecast)
    busiest_at = max(by_hour, key=lambda at: by_hour[at], default=None)
    most = by_hour[busiest_at] if busiest_at else 0
    return Expected(sum(by_hour.values()), overdue, busiest_at, most)


def headline(total: Row, queues: Sequence[Row]) -> str:
    """Say in a few sentences how it went."""
    if not total["settled"]:
        return "No message was settled in this time by a queue that keeps its history."
    several = f"{len(queues)} queues" if len(queues) > 1 else "one queue"
    said = [f"{number(total['settled'])} messages of {several} were settled."]
    if total["late_max"] is not None:
        said.append(
            f"Half of them were delivered within {span(total['late_p50'])} of their due time, "
            f"99% within {span(total['late_p99'])}; the last one waited {span(total['late_max'])}."
        )
    return " ".join([*said, _trouble(total, queues)])


def _trouble(total: Row, queues: Sequence[Row]) -> str:
    if not total["buried"] and not total["redelivered"]:
        return "Nothing went wrong: each was delivered once, and none was buried."
    again = f"{number(total['redelivered'])} had to be delivered more than once"
    if not total["buried"]:
        return f"None was buried; {again}."
    worst = max(queues, key=lambda row: row["buried"])
    mostly = f", {number(worst['buried'])} of them in {worst['queue']}" if len(queues) > 1 else ""
    return f"{number(total['buried'])} were buried{mostly}; {again}."


def figures(total: Row, expected: Expected) -> list[Figure]:
    """Return the numbers to begin with."""
    delivered, again = total["delivered"], total["redelivered"]
    return [
        Figure(number(total["settled"]), "settled"),
        Figure(span(total["late_p50"]), "late, half of them"),
        Figure(span(total["late_p99"]), "late, 1 in 100 by more"),
        Figure(span(total["handling_p50"]), "to handle, half of them"),
        Figure(share(delivered - again, delivered), "at the first attempt"),
        Figure(number(total["buried"]), "buried", bad=total["buried"] > 0),
        Figure(number(expected.overdue), "overdue now", bad=expected.overdue > 0),
        Figure(number(expected.messages), "due within 24 hours"),
    ]


def outlook(expected: Expected, times: Sequence[Row], step: timedelta) -> str:
    """Say what is to come, and how that compares."""
    if not expected.messages or expected.busiest_at is None:
        return "Nothing is scheduled for the next 24 hours."
    said = (
        f"{number(expected.messages)} messages fall due within 24 hours; most, "
        f"{number(expected.busiest)}, in the hour from {expected.busiest_at:%H:%M} UTC."
    )
    if step == timedelta(hours=1) and times:
        by_hour: dict[datetime, int] = {}
        for row in times:
            by_hour[row["at"]] = by_hour.get(row["at"], 0) + row["settled"]
        said += f" The busiest hour of this report settled {number(max(by_hour.values()))}."
    return said

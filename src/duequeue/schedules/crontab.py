"""Crontab expressions as schedules.

cronsim reads the expression and walks the calendar in plain local time. The wall clock decides
which instant a local time means, by the same rule as for `Daily`.
"""

from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from duequeue.errors import InvalidArgument, InvalidType
from duequeue.schedules.schedule import OnWallClock
from duequeue.schedules.zones import canonical_name, name_of

MAX_EXPRESSION_LENGTH = 500
_ANY_DAY = datetime(2000, 1, 1)  # noqa: DTZ001 - a local time, as the calendar knows no zone


NICKNAMES = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}


@dataclass(frozen=True, slots=True, init=False)
class Crontab(OnWallClock):
    """Ticks at the local times that match an expression of five or six fields.

    The fields are minute, hour, day-of-month, month, day-of-week; each takes `*`, values, names,
    ranges, steps and lists, and the days also `L`, `LW`, `5L` and `MON#2`. If both days are
    restricted, one of them has to match, unless one starts with `*`; then both have to. If there
    are six fields, the first one is the second. `@daily` and the like stand for five fields.
    """

    expression: str
    zone: str = field(compare=False)
    canonical_zone: str = field(repr=False)

    def __init__(self, expression: str, zone: str | ZoneInfo = "UTC") -> None:
        if isinstance(zone, ZoneInfo):
            zone = name_of(zone)
        object.__setattr__(self, "expression", _checked_expression(expression))
        object.__setattr__(self, "zone", zone)
        object.__setattr__(self, "canonical_zone", canonical_name(zone))

    def _next_local(self, after: datetime) -> datetime:
        return next(CronSim(self.expression, after))

    def _line(self, zone: str) -> str:
        return f"cron {self.expression} in {zone}"


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: str = ""
    also: str = ""

    def accepts(self, value: str) -> bool:
        if value.isascii() and value.isdigit():
            return self.low <= int(value) <= self.high
        return value in self.names.split()

    def expects(self) -> str:
        return f"{self.low}-{self.high}{self.also}"


_FIELDS = (
    _Field("second", 0, 59),
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day-of-month", 1, 31, "", ", L or LW"),
    _Field("month", 1, 12, "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", " or JAN-DEC"),
    _Field("day-of-week", 0, 7, "SUN MON TUE WED THU FRI SAT", ", SUN-SAT, 5L or MON#2"),
)


def _checked_expression(expression: str) -> str:
    if not isinstance(expression, str):
        raise InvalidType("expression", f"must be a str, not {type(expression).__name__}")
    if len(expression) > MAX_EXPRESSION_LENGTH:
        raise InvalidArgument("expression", f"is longer than {MAX_EXPRESSION_LENGTH} characters")
    parts = _full(expression.strip().upper()).split()
    if len(parts) not in (len(_FIELDS) - 1, len(_FIELDS)):
        wanted = " ".join(each.name for each in _FIELDS[1:])
        raise InvalidArgument(
            "expression",
            f"{expression!r} must have five fields: {wanted}; or six, with second first",
        )
    if parts[0] == "0" and len(parts) == len(_FIELDS):
        del parts[0]  # the same minutes, so the same configuration
    if complaint := _complaint(parts):
        raise InvalidArgument("expression", f"{expression!r} {complaint}")
    return " ".join(parts)


def _full(expression: str) -> str:
    """Return the five fields that a nickname stands for, or the expression itself."""
    if not expression.startswith("@"):
        return expression
    if expression not in NICKNAMES:
        known = ", ".join(NICKNAMES).lower()
        raise InvalidArgument("expression", f"{expression.lower()!r} is not one of {known}")
    return NICKNAMES[expression]


def _complaint(parts: list[str]) -> str | None:
    """Let cronsim judge the whole expression, and look for the faulty term only if it refuses."""
    try:
        if next(CronSim(" ".join(parts), _ANY_DAY), None):
            return None
    except CronSimError:
        for each, part in zip(_FIELDS[-len(parts) :], parts, strict=True):
            for term in part.split(","):
                if reason := _reason(each, term):
                    return f"has a bad {each.name} {term!r}: {reason}"
    return "never fires, because no day of the calendar matches"


def _reason(each: _Field, term: str) -> str | None:
    body, slash, step = term.partition("/")
    if slash and not (step.isascii() and step.isdigit() and int(step) > 0):
        return f"the step {step!r} is not a positive whole number"
    if _readable(each, term):
        return None
    low, dash, high = body.partition("-")
    for value in (low, high) if dash else (low,):
        if not each.accepts(value):
            return f"{value!r} is not within {each.expects()}"
    return "the range runs backwards"


def _readable(each: _Field, term: str) -> bool:
    if not term:
        return False
    fields = (term if other is each else "*" for other in _FIELDS)
    try:
        CronSim(" ".join(fields), _ANY_DAY)
    except CronSimError:
        return False
    return True

"""Zones of the tz database, and wall clocks on which every local time comes exactly once.

Names, aliases and rules all come from the `tzdata` package and never from the system, so that every
node with the same version of it computes the same ticks, in a bare container as on a laptop.
"""

from bisect import bisect_left
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from duequeue.errors import InvalidArgument, InvalidType
from duequeue.instants import MILLISECOND, from_millis, to_millis

_TZDATA = files("tzdata")


class WallClock:
    """The clock on a wall in one zone.

    A local time comes at the first instant at which the clock shows it or a later time. By this
    one rule, skipped times come when the gap ends, and repeated times come the first time.
    """

    def __init__(self, rules: ZoneInfo) -> None:
        self._rules = rules

    def first_shown(self, local: datetime) -> datetime:
        """Return the instant at which a naive local time comes."""
        instant = local.replace(tzinfo=self._rules, fold=0).astimezone(UTC)
        if instant.astimezone(self._rules).replace(tzinfo=None, fold=0) == local:
            return instant
        # In a gap, fold=1 reads the skipped time with the offset after the gap: an earlier instant.
        return self._turn(local.replace(tzinfo=self._rules, fold=1).astimezone(UTC), instant)

    def highest_shown(self, instant: datetime) -> datetime:
        """Return the latest local time that has come by a whole-millisecond instant."""
        local = instant.astimezone(self._rules)
        if not local.fold:
            return local.replace(tzinfo=None)
        # The clock was turned back. Until it catches up, it only shows what it has shown before.
        first_time = local.replace(fold=0).astimezone(UTC)
        return self._shown(self._turn(first_time, instant) - MILLISECOND)

    def _shown(self, instant: datetime) -> datetime:
        return instant.astimezone(self._rules).replace(tzinfo=None, fold=0)

    def _turn(self, before: datetime, after: datetime) -> datetime:
        """Return the first instant later than `before` at which its offset no longer holds."""
        offset = self._offset(before)
        candidates = range(to_millis(before), to_millis(after) + 1)
        turned = bisect_left(
            candidates, x=True, key=lambda millis: self._offset(from_millis(millis)) != offset
        )
        return from_millis(candidates[turned])

    def _offset(self, instant: datetime) -> timedelta | None:
        return instant.astimezone(self._rules).utcoffset()


@cache
def wall_clock(zone: str) -> WallClock:
    """Return the wall clock of a zone that `canonical_name` accepts."""
    return WallClock(rules_of(zone))


def rules_of(zone: str) -> ZoneInfo:
    """Return the rules of a zone that `canonical_name` accepts."""
    with _TZDATA.joinpath("zoneinfo", *canonical_name(zone).split("/")).open("rb") as rules:
        return ZoneInfo.from_file(rules, key=zone)


def name_of(zone: ZoneInfo) -> str:
    """Return the name of a zone; only the name counts, not the rules of the object."""
    if not zone.key:
        raise InvalidArgument(
            "zone", f"{zone!r} has no name; use ZoneInfo('Europe/Berlin') or the name"
        )
    return zone.key


def canonical_name(zone: str) -> str:
    """Return the one name that all aliases of a zone share, or raise and name the nearest zone."""
    if not isinstance(zone, str):
        raise InvalidType(
            "zone", f"must be the name of a zone or a ZoneInfo, not {type(zone).__name__}: {zone!r}"
        )
    if zone not in _names():
        raise InvalidArgument("zone", f"{zone!r} is unknown; {_suggestion(zone)}")
    while zone in _links():
        zone = _links()[zone]
    return zone


@cache
def _names() -> frozenset[str]:
    return frozenset(_TZDATA.joinpath("zones").read_text("utf-8").split())


@cache
def _links() -> Mapping[str, str]:
    """Map every alias to its target, by the lines `L <target> <alias>` of the compact database."""
    text = _TZDATA.joinpath("zoneinfo", "tzdata.zi").read_text("utf-8")
    links = [line.split() for line in text.splitlines() if line.startswith("L ")]
    return {alias: target for _, target, alias in links}


def _suggestion(zone: str) -> str:
    cities = {name.lower().rpartition("/")[2]: name for name in sorted(_names())}
    choices = cities | {name.lower(): name for name in sorted(_names())}
    nearest = get_close_matches(zone.lower().replace(" ", "_"), choices, n=1)
    if nearest:
        return f"did you mean {choices[nearest[0]]!r}?"
    return "write it as the tz database does, for example 'Europe/Berlin' or 'UTC'"

"""The options that every schedule takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypedDict

from duequeue.errors import InvalidType
from duequeue.headers import encode_headers
from duequeue.instants import positive_millis, to_millis
from duequeue.schedules.misfire import Misfire

SKIP = Misfire.skip()


class TickOptions(TypedDict, total=False):
    """The options of every method that installs a schedule.

    `misfire` says what happens to missed ticks. `jitter` delays each tick by up to that much, by
    the same amount on every node. `until` is the last instant that may tick. `headers` go with
    each message.
    """

    misfire: Misfire | None
    jitter: timedelta | None
    until: datetime | None
    headers: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class TickSettings:
    """The same options, checked; the jitter is in milliseconds."""

    misfire: Misfire
    jitter: int
    until: datetime | None
    headers: Mapping[str, str] | None


def checked_settings(
    *,
    misfire: Misfire | None = None,
    jitter: timedelta | None = None,
    until: datetime | None = None,
    headers: Mapping[str, str] | None = None,
) -> TickSettings:
    """Return the settings, or raise for an option that is not valid."""
    if misfire is not None and not isinstance(misfire, Misfire):
        raise InvalidType("misfire", f"must be a Misfire, not {misfire!r}")
    if until is not None:
        to_millis(until, "until")
    if headers is not None:
        encode_headers(headers)
    return TickSettings(
        misfire=misfire or SKIP,
        jitter=0 if jitter is None else positive_millis(jitter, "jitter"),
        until=until,
        headers=headers,
    )

"""An endpoint: where the messages of a queue are posted to, and how."""

import re
from datetime import timedelta
from typing import Self

import msgspec

from duequeue import defaults
from duequeue.backoff import Backoff
from duequeue.callbacks.definition import LONGEST_URL, MOST_ATTEMPTS, MOST_CALLS
from duequeue.callbacks.guard import Guard
from duequeue.errors import InvalidArgument, InvalidType
from duequeue.flows.arguments import keep_millis
from duequeue.instants import MILLISECOND, positive_millis
from duequeue.message import checked_name, checked_type_name
from duequeue.queue_names import OWN_QUEUES

# The header of a message that names one of its queue's endpoints.
ENDPOINT_HEADER = "duequeue-endpoint"

LONGEST_ID = 99
LONGEST_FULL_ID = 180
LONGEST_TIMEOUT = timedelta(days=1)
LOWEST_RATE, HIGHEST_RATE = 1 / 86_400, 1_000_000
BACKOFF = Backoff.parse(defaults.CALL_BACKOFF)

_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_ID - 1}}}", re.ASCII)
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(s|m|h|d)", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_ANYWHERE = Guard("off")


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of an endpoint; durations are in milliseconds, and the rate is per second.

    A message goes to the endpoint that its header names, or else to the default one of its queue.
    The id of an endpoint that belongs to a prefix of queue names is `prefix/name`.
    """

    id: str
    queue: str
    type: str = defaults.CALL_TYPE
    url: str
    timeout: int = defaults.CALL_TIMEOUT // MILLISECOND
    concurrency: int = defaults.CALL_CONCURRENCY
    rate: float | None = None
    attempts: int = defaults.CALL_ATTEMPTS
    first_delay: int = BACKOFF.first // MILLISECOND
    longest_delay: int = BACKOFF.longest // MILLISECOND
    delay_factor: float = BACKOFF.factor
    respond: bool = False
    keep: int = defaults.KEEP // MILLISECOND
    default: bool = True

    @property
    def prefix(self) -> str:
        """The prefix of queue names that it belongs to; empty if it belongs to all of them."""
        return self.id.rpartition("/")[0]

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.id.rpartition("/")[2]

    @property
    def kind(self) -> tuple[str, str]:
        """The name and the payload type of its queue."""
        return self.queue, self.type

    @property
    def backoff(self) -> Backoff:
        """The delays after failed attempts."""
        return Backoff(
            self.first_delay * MILLISECOND, self.longest_delay * MILLISECOND, self.delay_factor
        )

    def checked(self) -> Self:
        """Return the endpoint, or raise an error that names the argument that is wrong."""
        checked_endpoint_id(self.name)
        checked_name(self.queue, "queue")
        if self.queue in OWN_QUEUES:
            raise InvalidArgument("queue", text="this queue belongs to the server itself")
        if not self.queue.startswith(self.prefix):
            raise InvalidArgument("queue", f"must begin with {self.prefix!r}, as the id does")
        if len(self.id) > LONGEST_FULL_ID:
            raise InvalidArgument("id", f"and its prefix may have {LONGEST_FULL_ID} characters")
        checked_type_name(self.type, "type")
        _check_url(self.url)
        _check_span(self.timeout, "timeout", LONGEST_TIMEOUT)
        _check_number(self.concurrency, "concurrency", MOST_CALLS)
        _check_number(self.attempts, "attempts", MOST_ATTEMPTS)
        if self.rate is not None:
            _check_rate(self.rate)
        keep_millis(self.keep * MILLISECOND)
        _ = self.backoff
        return self


def checked_endpoint_id(text: str) -> str:
    """Return the id of an endpoint, or raise if a path or a header could not hold it."""
    if not isinstance(text, str):
        raise InvalidType("id", f"must be a str, not {type(text).__name__}")
    if not _ID.fullmatch(text):
        raise InvalidArgument(
            "id",
            f"must have 1 to {LONGEST_ID} letters, digits, dots, hyphens or underscores, and "
            "begin with a letter or a digit",
        )
    return text


def full_endpoint_id(prefix: str, name: str) -> str:
    """Return the id of an endpoint that belongs to a prefix of queue names."""
    return f"{prefix}/{name}" if prefix else name


def read_rate(given: str | float) -> float:
    """Return calls per second, which may be written as a number or as in "100/m"."""
    if not isinstance(given, str):
        return _check_rate(given)
    found = _RATE.fullmatch(given.strip())
    if found is None:
        raise InvalidArgument(
            "rate", 'must be calls per second, or a text such as "100/m" or "5/s"'
        )
    return _check_rate(float(found[1]) / _SECONDS[found[2]])


def _check_rate(rate: float) -> float:
    if not isinstance(rate, int | float):
        raise InvalidType("rate", f"must be a number, or a text, not {rate!r}")
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise InvalidArgument(
            "rate", f"must be between one call a day and {HIGHEST_RATE:,} a second, not {rate!r}"
        )
    return rate


def _check_url(url: str) -> None:
    _ANYWHERE.checked_url(url)
    if len(url) > LONGEST_URL:
        raise InvalidArgument("url", f"must have at most {LONGEST_URL} characters, not {len(url)}")
    if "#" in url:
        raise InvalidArgument("url", "must not have a fragment, because it is never sent")


def _check_span(millis: int, argument: str, longest: timedelta) -> None:
    span = millis * MILLISECOND
    positive_millis(span, argument)
    if span > longest:
        raise InvalidArgument(argument, f"must be at most {longest}, not {span}")


def _check_number(number: int, argument: str, most: int) -> None:
    if not 1 <= number <= most:
        raise InvalidArgument(
            argument, f"must be a whole number from 1 to {most:,}, not {number!r}"
        )

"""What a receiver's answer means for the message and for the endpoint."""

from codecs import utf_8_decode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from duequeue.callbacks.failures import plain
from duequeue.durations import parse_duration
from duequeue.errors import InvalidArgument
from duequeue.instants import LONGEST as LONGEST_LEASE
from duequeue.instants import MILLISECOND, nearest_instant

LONGEST_DELAY = timedelta(days=1)
LONGEST_EXCERPT = 200

_NONE: timedelta = timedelta(0)
# With these statuses, the receiver says that it cannot take this message, but may take others.
_ABOUT_THE_MESSAGE = frozenset({400, 409, 411, 413, 414, 415, 417, 422, 423, 424, 428, 431})


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """What came back; the names of headers are in lower case.

    The body is what was read of it, up to a limit. `is_complete` says whether that was all.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class Accepted:
    """The message is done. `response` is the body, or None if it is too long or compressed."""

    response: bytes | None


@dataclass(frozen=True, slots=True)
class Kept:
    """The receiver keeps the message under its lease, and settles it later by token."""

    lease: timedelta


@dataclass(frozen=True, slots=True)
class TryLater:
    """The call failed. Without a delay, the message waits as long as its backoff says.

    `blames_endpoint` is False if only this message was refused, or if the fault is on our side,
    which no breaker should count. In the latter case, `was_called` is False too: the attempt says
    nothing about the endpoint.
    """

    reason: str
    delay: timedelta | None = None
    blames_endpoint: bool = True
    was_called: bool = True


@dataclass(frozen=True, slots=True)
class Aborted:
    """The receiver never wants this message again, so it is to be buried."""

    reason: str


@dataclass(frozen=True, slots=True)
class SwitchedOff:
    """The endpoint wants no more calls. `accepted` is set if it still took this message."""

    reason: str
    accepted: Accepted | None = None


Meaning = Accepted | Kept | TryLater | Aborted | SwitchedOff


def meaning_of(answer: CallAnswer, now: int) -> Meaning:
    """Return what to do after an answer.

    `now` is in milliseconds, and only matters if `Retry-After` is a date.
    """
    wish = answer.headers.get("webhook-delivery", "").strip().lower()
    is_success = HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES
    if wish == "disable":
        reason = f"{_line(answer)} with webhook-delivery: disable"
        return SwitchedOff(reason, _accepted(answer) if is_success else None)
    if answer.status == HTTPStatus.GONE:
        return SwitchedOff(_reason(answer))
    if is_success:
        return _success(answer)
    if wish == "abort-message":
        return Aborted(f"{_reason(answer)} (webhook-delivery: abort-message)")
    blames_endpoint = answer.status not in _ABOUT_THE_MESSAGE
    return TryLater(_reason(answer), _delay(answer, now), blames_endpoint)


def _success(answer: CallAnswer) -> Accepted | Kept | TryLater:
    extend = answer.headers.get("duequeue-extend")
    if answer.status != HTTPStatus.ACCEPTED or extend is None:
        return _accepted(answer)
    try:
        return Kept(_extension(extend))
    except InvalidArgument as error:
        # An ack would take the message from a receiver that means to settle it later.
        return TryLater(f"{_line(answer)} with duequeue-extend: {error}")


def _extension(text: str) -> timedelta:
    lease = parse_duration(text)
    if not MILLISECOND <= lease <= LONGEST_LEASE:
        most = f"{LONGEST_LEASE.days:,} days"
        raise InvalidArgument("duequeue-extend", text=f"{plain(text, 40)!r} is not 1 ms to {most}")
    return lease


def _accepted(answer: CallAnswer) -> Accepted:
    is_plain = answer.headers.get("content-encoding", "identity").strip().lower() == "identity"
    readable = answer.is_complete and is_plain
    return Accepted(answer.body if readable else None)


def _delay(answer: CallAnswer, now: int) -> timedelta | None:
    """Return the delay that `Retry-After` asks for; None if there is none, or if it is over."""
    text = answer.headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        asked = _seconds(text) if text[0].isdigit() else _date(text) - nearest_instant(now)
    except OverflowError:
        asked = LONGEST_DELAY
    except ValueError:
        return None
    return min(asked, LONGEST_DELAY) if asked > _NONE else None


def _seconds(text: str) -> timedelta:
    return timedelta(seconds=float(text))


def _date(text: str) -> datetime:
    date = parsedate_to_datetime(text)
    return date.replace(tzinfo=UTC) if date.tzinfo is None else date


def _reason(answer: CallAnswer) -> str:
    """Say what was answered, with the beginning of the body if that is text."""
    said = _excerpt(answer)
    target = answer.headers.get("location")
    if HTTPStatus.MULTIPLE_CHOICES <= answer.status < HTTPStatus.BAD_REQUEST and target:
        return f"{_line(answer)}, a redirect to {plain(target, 100)}, which is not followed"
    return f"{_line(answer)}: {said}" if said else _line(answer)


def _line(answer: CallAnswer) -> str:
    try:
        phrase = HTTPStatus(answer.status).phrase
    except ValueError:
        return f"answered {answer.status}"
    return f"answered {answer.status} {phrase}"


def _excerpt(answer: CallAnswer) -> str:
    if answer.headers.get("content-encoding", "identity") != "identity":
        return ""
    try:
        text, _ = utf_8_decode(answer.body[: 4 * LONGEST_EXCERPT])  # a character may be cut
    except UnicodeDecodeError:
        return ""
    return plain(text, LONGEST_EXCERPT)

"""What answers mean."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from duequeue.callbacks.answer import (
    LONGEST_DELAY,
    Aborted,
    Accepted,
    CallAnswer,
    Kept,
    SwitchedOff,
    TryLater,
    meaning_of,
)
from duequeue.instants import to_millis

TODAY = datetime(2026, 5, 1, 12, tzinfo=UTC)
NOW = to_millis(TODAY)


def test_success_is_accepted_with_the_body_as_the_response() -> None:
    for status in (200, 201, 202, 204, 299):
        answer = CallAnswer(status, {"content-type": "application/json"}, b'{"a":1}')
        assert meaning_of(answer, NOW) == Accepted(b'{"a":1}')


def test_a_response_that_cannot_be_read_whole_is_none() -> None:
    assert meaning_of(CallAnswer(200, {}, b"x" * 9, is_complete=False), NOW) == Accepted(None)
    assert meaning_of(CallAnswer(200, {"content-encoding": "gzip"}, b"?"), NOW) == Accepted(None)
    assert meaning_of(CallAnswer(200, {"content-encoding": "identity"}, b"!"), NOW) == Accepted(
        b"!"
    )


@pytest.mark.parametrize(("text", "seconds"), [("600", 600), ("10m", 600), (" 1.5s ", 1.5)])
def test_a_receiver_keeps_a_message(text: str, seconds: float) -> None:
    kept = meaning_of(CallAnswer(202, {"duequeue-extend": text}), NOW)
    assert kept == Kept(timedelta(seconds=seconds))
    assert meaning_of(CallAnswer(200, {"duequeue-extend": text}), NOW) == Accepted(b"")


@pytest.mark.parametrize("text", ["soon", "0", "-5", "999999999999d", "1e5", ""])
def test_a_lease_that_is_not_a_duration_loses_no_message(text: str) -> None:
    meaning = meaning_of(CallAnswer(202, {"duequeue-extend": text}), NOW)
    assert isinstance(meaning, TryLater)
    assert "duequeue-extend" in meaning.reason


@pytest.mark.parametrize("status", [100, 301, 302, 307, 308, 400, 404, 422, 429, 500, 503, 599])
def test_anything_else_is_tried_later(status: int) -> None:
    meaning = meaning_of(CallAnswer(status, {}, b"no  room\n"), NOW)
    assert isinstance(meaning, TryLater)
    assert meaning.delay is None
    assert meaning.reason.startswith(f"answered {status}")
    assert meaning.reason.endswith(": no room")


def test_a_redirect_is_named_and_not_followed() -> None:
    there = {"location": "http://169.254.169.254/\r\nlatest"}
    assert meaning_of(CallAnswer(302, there), NOW) == TryLater(
        "answered 302 Found, a redirect to http://169.254.169.254/ latest, which is not followed"
    )


@pytest.mark.parametrize(
    ("status", "blamed"), [(400, False), (422, False), (404, True), (429, True), (500, True)]
)
def test_a_refusal_of_one_message_does_not_blame_the_endpoint(status: int, blamed: bool) -> None:
    meaning = meaning_of(CallAnswer(status, {}), NOW)
    assert isinstance(meaning, TryLater)
    assert meaning.blames_endpoint is blamed


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        (" 1.5 ", 1.5),
        ("Fri, 01 May 2026 12:10:00 GMT", 600),
        ("Friday, 01-May-26 12:10:00 GMT", 600),
        ("Fri May  1 12:10:00 2026", 600),
        ("86400", 86_400),
        ("999999999999999999999", 86_400),
        ("9" * 400, 86_400),
        ("Sat, 01 May 2027 12:10:00 GMT", 86_400),
        ("0", None),
        ("-3", None),
        ("Fri, 01 May 2026 11:59:59 GMT", None),
        ("tomorrow", None),
        ("", None),
    ],
)
def test_retry_after_is_honoured_as_asked_up_to_a_day(text: str, seconds: float | None) -> None:
    meaning = meaning_of(CallAnswer(429, {"retry-after": text}), NOW)
    assert isinstance(meaning, TryLater)
    assert meaning.delay == (None if seconds is None else timedelta(seconds=seconds))


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2100, 1, 1)))  # noqa: DTZ001
def test_every_date_is_read(date: datetime) -> None:
    later = date.replace(microsecond=0, tzinfo=UTC)
    answer = CallAnswer(429, {"retry-after": format_datetime(later, usegmt=True)})
    meaning = meaning_of(answer, NOW)
    assert isinstance(meaning, TryLater)
    assert meaning.delay == (min(later - TODAY, LONGEST_DELAY) if later > TODAY else None)


@given(st.text(), st.text(), st.text(), st.binary(), st.integers(min_value=100, max_value=999))
@example("Fri, 31 Dec 9999 23:59:59 -1200", "", "", b"", 429)
@example("Fri, 01 Jan 0001 00:00:00 +1200", "", "", b"", 429)
@example("1" * 5_000, "1" * 5_000, "", b"\xe2\x82", 202)
def test_no_answer_is_an_error(
    retry_after: str, extend: str, delivery: str, body: bytes, status: int
) -> None:
    headers = {
        "retry-after": retry_after,
        "duequeue-extend": extend,
        "webhook-delivery": delivery,
        "location": extend,
    }
    meaning = meaning_of(CallAnswer(status, headers, body), NOW)
    if not isinstance(meaning, Accepted | Kept):
        assert meaning.reason.isprintable()
        assert 0 < len(meaning.reason) < 400


def test_the_endpoint_is_switched_off() -> None:
    assert meaning_of(CallAnswer(410, {}, b"moved out"), NOW) == SwitchedOff(
        "answered 410 Gone: moved out"
    )
    off = {"webhook-delivery": " Disable"}
    assert meaning_of(CallAnswer(500, off), NOW) == SwitchedOff(
        "answered 500 Internal Server Error with webhook-delivery: disable"
    )
    assert meaning_of(CallAnswer(200, off, b"1"), NOW) == SwitchedOff(
        "answered 200 OK with webhook-delivery: disable", Accepted(b"1")
    )


def test_a_message_is_aborted_unless_it_was_accepted() -> None:
    abort = {"webhook-delivery": "abort-message"}
    assert meaning_of(CallAnswer(422, abort, b"no such order"), NOW) == Aborted(
        "answered 422 Unprocessable Entity: no such order (webhook-delivery: abort-message)"
    )
    assert meaning_of(CallAnswer(200, abort), NOW) == Accepted(b"")


def test_the_reason_is_short_and_without_control_characters() -> None:
    meaning = meaning_of(CallAnswer(500, {}, b"\x1b[31mred\x00\r\n" + b"long " * 500), NOW)
    assert isinstance(meaning, TryLater)
    assert meaning.reason.isprintable()
    assert len(meaning.reason) < 300
    assert meaning_of(CallAnswer(500, {}, b"\xff\xfe binary"), NOW) == TryLater(
        "answered 500 Internal Server Error"
    )
    assert meaning_of(CallAnswer(599, {}, "né".encode()[:2]), NOW) == TryLater("answered 599: n")

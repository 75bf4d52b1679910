"""Listeners: who is told, and what happens when one of them fails."""

import logging
from datetime import timedelta
from typing import Any, NoReturn

import pytest

from duequeue.contract.logs import records_of
from duequeue.events.events import (
    Buried,
    Delivered,
    EndHandling,
    EndOffering,
    Event,
    Events,
    Handled,
    LeaseLost,
    Offered,
    StoreFailed,
)
from duequeue.events.log import log_events
from duequeue.leased import LeasedMessage
from duequeue.port.store import Claimed, Lease, Record
from duequeue.verdict import Acked, Parked, Released, Verdict

LOST = LeaseLost("orders", "a")
RECORDS = [Record("a", b"1", 0)]


def message() -> LeasedMessage[int]:
    return LeasedMessage("orders", Claimed(Lease(1, 2, 0, "a"), "a", b"1", 0, 3, None, 0), 1, 0)


class Orders:
    """As much of a queue as can be listened to."""

    name = "orders"

    def __init__(self) -> None:
        self.events = Events()


class FailingTracing:
    """Fails wherever it can."""

    def __init__(self, *, at_the_end: bool) -> None:
        self._at_the_end = at_the_end

    def offering(self, records: list[Record]) -> tuple[list[Record], EndOffering]:
        return records, fail if self._at_the_end else fail()

    def handling(self, message: LeasedMessage[Any]) -> EndHandling:  # noqa: ARG002 - its signature
        return fail if self._at_the_end else fail()


def fail(*_: object) -> NoReturn:
    raise LookupError("not today")


def test_everybody_who_subscribed_is_told_until_they_unsubscribe() -> None:
    events = Events()
    first: list[Event] = []
    second: list[Event] = []
    events.emit(LOST)
    leave = events.subscribe(first.append)
    events.subscribe(second.append)
    events.emit(LOST)
    leave()
    leave()
    events.emit(LOST)
    assert (first, second) == ([LOST], [LOST, LOST])


def test_one_listener_may_subscribe_twice_and_leave_once() -> None:
    events = Events()
    told: list[Event] = []
    leave = events.subscribe(told.append)
    events.subscribe(told.append)
    events.emit(LOST)
    leave()
    events.emit(LOST)
    assert told == [LOST] * 3
    assert len(events.listeners) == 1


def test_a_listener_that_fails_is_logged_and_disturbs_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events = Events()
    told: list[Event] = []
    events.subscribe(fail)
    events.subscribe(told.append)
    events.emit(LOST)
    assert told == [LOST]
    assert "not today" in caplog.text


def test_what_cannot_be_called_is_no_listener() -> None:
    nobody: Any = "nobody"
    with pytest.raises(TypeError, match="listener"):
        Events().subscribe(nobody)


@pytest.mark.parametrize("at_the_end", [False, True])
def test_tracing_that_fails_disturbs_nobody(
    at_the_end: bool, caplog: pytest.LogCaptureFixture
) -> None:
    events = Events()
    events.tracing = FailingTracing(at_the_end=at_the_end)
    with events.offering(RECORDS) as stamped:
        assert stamped == RECORDS
    with events.handling(message()) as tell:
        tell(None, Acked())
    records = records_of("duequeue", caplog)
    assert [record.exc_info and record.exc_info[0] for record in records] == [LookupError] * 2


def test_an_error_goes_through_an_offer_that_is_watched() -> None:
    events = Events()
    with pytest.raises(LookupError), events.offering(RECORDS):
        fail()


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [
        (Acked(), "acked"),
        (Released(timedelta(0)), "released"),
        (Parked("enough"), "buried"),
        (None, "settled"),
    ],
)
def test_a_handler_is_told_of_when_it_ends(verdict: Verdict | None, outcome: str) -> None:
    events = Events()
    told: list[Event] = []
    events.subscribe(told.append)
    error = LookupError()
    with events.handling(message()) as tell:
        tell(error, verdict)
    (event,) = told
    assert isinstance(event, Handled)
    assert (event.queue_name, event.key, event.attempt) == ("orders", "a", 3)
    assert (event.verdict, event.outcome, event.error) == (verdict, outcome, error)
    assert event.duration >= timedelta(0)


def test_events_are_logged_with_their_fields(caplog: pytest.LogCaptureFixture) -> None:
    queue = Orders()
    caplog.set_level(logging.DEBUG, "duequeue.events")
    leave = log_events(queue)
    second = timedelta(seconds=1)
    everyday: list[Event] = [
        Offered("orders", 1, 2, 3),
        Delivered("orders", "a", 1, second),
        Handled("orders", "a", 1, second, Acked(), None),
    ]
    remarkable: list[Event] = [
        Handled("orders", "a", 1, second, Released(second), LookupError("x")),
        Buried("orders", "a", "enough"),
        LOST,
        StoreFailed("orders", LookupError("x")),
    ]
    for event in [*everyday, *remarkable]:
        queue.events.emit(event)
    leave()
    queue.events.emit(LOST)
    records = records_of("duequeue.events", caplog)
    assert [record.levelname for record in records] == ["DEBUG"] * 3 + ["INFO"] * 4
    told = [vars(record)["duequeue"] for record in records]
    assert told[0] == {
        "event": "Offered",
        "queue_name": "orders",
        "created": 1,
        "updated": 2,
        "ignored": 3,
    }
    assert told[1]["lateness"] == 1.0
    assert told[3] == {
        "event": "Handled",
        "queue_name": "orders",
        "key": "a",
        "attempt": 1,
        "duration": 1.0,
        "outcome": "released",
        "error": "LookupError('x')",
    }
    assert records[4].getMessage() == "Buried queue_name='orders' key='a' reason='enough'"


def test_nothing_is_written_for_a_log_nobody_reads(caplog: pytest.LogCaptureFixture) -> None:
    queue = Orders()
    caplog.set_level(logging.INFO, "duequeue.events")
    log_events(queue)
    queue.events.emit(Offered("orders", 1, 0, 0))
    queue.events.emit(LOST)
    assert len(records_of("duequeue.events", caplog)) == 1

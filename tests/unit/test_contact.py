"""An outage logs one line when the store is lost, one a minute, and one when it is back."""

import logging

import pytest

from duequeue import StoreUnavailable
from duequeue.contract.logs import records_of
from duequeue.process.contact import StoreContact, contact_with


class Seconds:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def fail_until(contact: StoreContact, seconds: Seconds, end: float) -> None:
    """Fail twice a second."""
    while seconds.now < end:
        contact.failed(StoreUnavailable("nobody\n\tanswers"))
        seconds.now += 0.5


def test_an_outage_is_logged_by_the_minute(caplog: pytest.LogCaptureFixture) -> None:
    seconds = Seconds()
    contact = StoreContact("PostgreSQL at db", seconds)
    fail_until(contact, seconds, 100.0 + 150)
    assert contact.is_lost
    contact.regained()
    assert not contact.is_lost
    assert [(each.levelno, each.getMessage()) for each in records_of("duequeue", caplog)] == [
        (logging.WARNING, "the store is unavailable, and calls wait for it: nobody answers"),
        (logging.ERROR, "the store has been unavailable for 1.0 min: nobody answers"),
        (logging.ERROR, "the store has been unavailable for 2.0 min: nobody answers"),
        (logging.WARNING, "PostgreSQL at db is available again, after 2.5 min"),
    ]


def test_a_store_that_is_busy_for_a_moment_is_not_lost(caplog: pytest.LogCaptureFixture) -> None:
    seconds = Seconds()
    contact = StoreContact("PostgreSQL at db", seconds)
    for _ in range(5):
        fail_until(contact, seconds, seconds.now + 1)
        contact.regained()
    assert not contact.is_lost
    assert records_of("duequeue", caplog) == []


def test_queues_on_the_same_tables_share_a_contact() -> None:
    contact = contact_with("here", "db")
    assert contact_with("here", "db") is contact
    assert contact_with("there", "db") is not contact

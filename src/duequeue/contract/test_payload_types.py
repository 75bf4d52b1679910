"""A name that is opened with another payload type than before is warned about, once."""

import logging
from dataclasses import dataclass
from typing import Any

import pytest

from duequeue.contract.fixtures import OpenQueue
from duequeue.contract.logs import records_of


@dataclass
class Order:
    """A payload type."""

    total: int


@dataclass
class Invoice:
    """Another payload type."""

    total: int


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged about payload types."""
    words = (each.getMessage() for each in records_of("duequeue", caplog))
    return [each for each in words if "payload types" in each]


def test_another_payload_type_is_warned_about_once_with_both_counts(
    open_queue: OpenQueue, caplog: pytest.LogCaptureFixture
) -> None:
    orders = open_queue("typed-orders", codec=Order)
    for number in range(3):
        orders.offer(str(number), Order(number))
    with caplog.at_level(logging.WARNING, "duequeue"):
        open_queue("typed-orders")
        open_queue("typed-orders", codec=Invoice)
        open_queue("typed-orders", codec=Order)
    (line,) = warnings(caplog)
    assert line == (
        "queue 'typed-orders' has several payload types, which never see each other's messages: "
        "'Order' with 3 live messages, 'json' with 0 live messages. It was opened here with the "
        "type 'json'; if that is not meant, give its codec"
    )


@pytest.mark.parametrize("name", ["typed%orders", "typed_order", "Typed-orders", "typed-orders-2"])
def test_other_names_are_other_queues(
    open_queue: OpenQueue, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    open_queue("typed-orders", codec=Order).offer("a", Order(1))
    with caplog.at_level(logging.WARNING, "duequeue"):
        open_queue(name)
        open_queue("typed-orders", codec=Order)
    assert warnings(caplog) == []


def test_an_empty_type_is_not_worth_a_warning_to_the_one_in_use(
    open_queue: OpenQueue, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders: Any = open_queue("orders", codec=Order)
    open_queue("orders")
    monkeypatch.setattr("duequeue.flows.opening._warned_of", set())
    orders.offer("a", Order(1))
    caplog.clear()
    with caplog.at_level(logging.WARNING, "duequeue"):
        open_queue("orders", codec=Order)
        assert warnings(caplog) == []
        open_queue("orders")
    assert len(warnings(caplog)) == 1

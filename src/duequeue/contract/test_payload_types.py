"""Opening a name with another payload type than before logs a warning, once."""

import logging
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from duequeue.contract.fixtures import OpenQueue
from duequeue.contract.logs import messages_of


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
    return messages_of("duequeue.opening", caplog)


@pytest.fixture
def name() -> str:
    """A name of its own, because databases keep the types of earlier tests."""
    return f"orders-{uuid4()}"


def test_another_payload_type_is_warned_about_once_with_both_counts(
    open_queue: OpenQueue, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    orders = open_queue(name, codec=Order)
    for number in range(3):
        orders.offer(str(number), Order(number))
    with caplog.at_level(logging.WARNING, "duequeue"):
        open_queue(name)
        open_queue(name, codec=Invoice)
        open_queue(name, codec=Order)
    (line,) = warnings(caplog)
    assert line == (
        f"queue {name!r} has several payload types, which never see each other's messages: "
        "'Order' with 3 live messages, 'json' with 0 live messages. It was opened here with the "
        "type 'json'; if that is not meant, give its codec"
    )


def test_other_names_are_other_queues(
    open_queue: OpenQueue, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    open_queue(name, codec=Order).offer("a", Order(1))
    with caplog.at_level(logging.WARNING, "duequeue"):
        for other in (name.upper(), name[:-1], f"{name}2", name.replace("-", "_"), f"%{name[1:]}"):
            open_queue(other)
        open_queue(name, codec=Order)
    assert warnings(caplog) == []


def test_an_empty_type_is_not_worth_a_warning_to_the_one_in_use(
    open_queue: OpenQueue,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    orders: Any = open_queue(name, codec=Order)
    open_queue(name)
    monkeypatch.setattr("duequeue.flows.opening._warned_of", set())
    orders.offer("a", Order(1))
    caplog.clear()
    with caplog.at_level(logging.WARNING, "duequeue"):
        open_queue(name, codec=Order)
        assert warnings(caplog) == []
        open_queue(name)
    assert len(warnings(caplog)) == 1

"""How often each call crosses the wire to PostgreSQL: once, almost always."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import psycopg
import pytest

from duequeue import ManualClock, Message
from duequeue.contract.faces import DeliveryFace, Face, QueueFace, SyncFace
from duequeue.contract.phrases import DAY, PATIENCE
from duequeue.stores import mailbox
from tests.sql.wire import Traffic, Wire

ONCE = Traffic(statements=1, round_trips=1, transactions=1)

Call: TypeAlias = Callable[[QueueFace, int], object]
Settle: TypeAlias = Callable[[QueueFace, list[DeliveryFace]], object]

# By the last lap psycopg has prepared the statement, which took a round trip of its own once.
LAPS = 8


@pytest.fixture
def wire(ready_database: str) -> Iterator[Wire]:
    with Wire(ready_database) as wire:
        yield wire


@pytest.fixture(params=[False, True], ids=["without history", "with history"])
def queue(
    request: pytest.FixtureRequest, wire: Wire, face: Face, clock: ManualClock
) -> Iterator[QueueFace]:
    # With a single connection, nothing but the call itself is on the wire.
    url = f"{wire.url}&pool_size=1"
    with face.open(url, "orders", clock=clock, history=request.param) as queue:
        yield queue


def batch(size: int, lap: int = 0) -> list[Message[Any]]:
    """Messages for later, of which nobody needs to be told now."""
    return [Message(f"order-{number}", lap, DAY) for number in range(size)]


CALLS: dict[str, Call] = {
    "offer": lambda queue, lap: queue.offer("order-1", lap, DAY),
    "offer_batch": lambda queue, lap: queue.offer_batch(batch(1000, lap)),
    "read": lambda queue, _: queue.read("order-1"),
    "contains": lambda queue, _: queue.contains("order-1"),
    "response": lambda queue, _: queue.response("order-1", 0),
    "forget_response": lambda queue, _: queue.forget_response("order-1"),
    "stats": lambda queue, _: queue.stats(),
    "forecast": lambda queue, _: queue.forecast(),
    "buried": lambda queue, _: queue.buried(10),
    "history": lambda queue, _: queue.history(10),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_crosses_once(wire: Wire, queue: QueueFace, call: Call) -> None:
    queue.offer_batch(batch(LAPS))
    traffic = [wire.traffic_of(partial(call, queue, lap)) for lap in range(LAPS)]
    assert [traffic[0], traffic[-1]] == [ONCE, ONCE]


def test_a_large_batch_crosses_once_for_each_thousand(wire: Wire, queue: QueueFace) -> None:
    for _ in range(LAPS):
        queue.offer_batch(batch(2))
    assert wire.traffic_of(partial(queue.offer_batch, batch(2500))) == Traffic(3, 3, 3)


def test_a_batch_with_a_key_three_times_is_three_statements(
    wire: Wire, face: Face, queue: QueueFace
) -> None:
    """They cross together, but not for awaiting queues, whose cancellations spoil a pipeline."""
    repeated = [*batch(100, 1), *batch(2, 2), *batch(1, 3)]
    for _ in range(LAPS):
        queue.offer_batch(repeated)
    offer = partial(queue.offer_batch, [*repeated, Message("other", 1, DAY, replace=False)])
    crossing = Traffic(3, 1, 1) if isinstance(face, SyncFace) else Traffic(5, 5, 1)
    assert wire.traffic_of(offer) == crossing


def test_a_poll_crosses_once(wire: Wire, queue: QueueFace, clock: ManualClock) -> None:
    queue.offer_batch(batch(100 * LAPS))
    clock.advance(DAY)
    traffic = [wire.traffic_of(partial(queue.try_poll_many, 100)) for _ in range(LAPS)]
    assert [traffic[0], traffic[-1]] == [ONCE, ONCE]
    assert queue.stats().leased == 100 * LAPS


def transaction(statements: int) -> Traffic:
    """Some statements between BEGIN and COMMIT."""
    return Traffic(statements + 2, statements + 2, transactions=1)


SETTLEMENTS: dict[str, tuple[Settle, Traffic]] = {
    "ack_many": (lambda queue, held: queue.ack_many(held), ONCE),
    "ack": (lambda _, held: held[0].ack(), ONCE),
    "extend": (lambda _, held: held[0].extend(), ONCE),
    "release": (lambda _, held: held[0].release(DAY), ONCE),
}

# These also store a response, or the reason why there is none, and notify other processes of that.
ANSWERS: dict[str, tuple[Settle, int]] = {
    "answer": (lambda _, held: held[0].ack(response="done"), 3),
    "bury": (lambda _, held: held[0].bury("enough"), 4),
    "drop": (lambda queue, held: queue.drop(held[0].key), 3),
}


@pytest.mark.parametrize(("settle", "expected"), SETTLEMENTS.values(), ids=SETTLEMENTS)
def test_settling_crosses_once(
    wire: Wire, queue: QueueFace, clock: ManualClock, settle: Settle, expected: Traffic
) -> None:
    queue.offer_batch(batch(100 * LAPS))
    clock.advance(DAY)
    claims = [queue.try_poll_many(100) for _ in range(LAPS)]
    traffic = [wire.traffic_of(partial(settle, queue, claim)) for claim in claims]
    assert [traffic[0], traffic[-1]] == [expected, expected]


@pytest.mark.parametrize(("settle", "statements"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_crosses_once(
    wire: Wire,
    face: Face,
    queue: QueueFace,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    *,
    settle: Settle,
    statements: int,
) -> None:
    """It crosses once for blocking queues; the first one also clears away what has expired."""
    monkeypatch.setattr(mailbox, "SEND_EVERY", 0.0)  # so that each of them notifies
    queue.offer_batch(batch(100 * LAPS))
    clock.advance(DAY)
    claims = [queue.try_poll_many(100) for _ in range(LAPS)]
    traffic = [wire.traffic_of(partial(settle, queue, claim)) for claim in claims]
    is_blocking = isinstance(face, SyncFace)
    assert traffic[-1] == (Traffic(statements, 1, 1) if is_blocking else transaction(statements))


def test_to_drop_all_is_one_transaction(wire: Wire, queue: QueueFace) -> None:
    drop_all = partial(queue.drop_all, queue.name)
    traffic = [wire.traffic_of(drop_all) for _ in range(LAPS)]
    assert [traffic[0], traffic[-1]] == [transaction(2), transaction(2)]


def test_telling_other_processes_takes_no_round_trip_of_its_own(
    wire: Wire, queue: QueueFace, ready_database: str
) -> None:
    with psycopg.connect(ready_database, autocommit=True) as other:
        other.execute("LISTEN duequeue")
        assert wire.traffic_of(lambda: queue.offer("now", 1)) == ONCE
        told = [note.payload for note in other.notifies(timeout=PATIENCE, stop_after=1)]
        assert len(told) == 1
        queue.offer("now", 1)  # ignored, so there is nothing to tell
        queue.offer("later", 1, DAY)  # nobody needs to know yet
        assert list(other.notifies(timeout=0)) == []


def test_a_growing_id_prepares_nothing_anew(
    wire: Wire, queue: QueueFace, clock: ManualClock, ready_database: str
) -> None:
    queue.offer_batch(batch(LAPS))
    with psycopg.connect(ready_database, autocommit=True) as other:
        other.execute(
            "SELECT setval('duequeue_message_id_seq', greatest(last_value, 40000))"
            " FROM duequeue_message_id_seq"
        )
    queue.offer_batch([Message(f"late-{number}", 1, DAY) for number in range(LAPS)])
    clock.advance(DAY)
    for _ in range(LAPS):
        assert queue.try_poll() is not None
    assert [wire.traffic_of(queue.try_poll) for _ in range(LAPS)] == [ONCE] * LAPS

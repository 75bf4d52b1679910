"""A lease begins when the store answers, not when it was first asked."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duequeue import ManualClock, Message, Queue, RetryPolicy, State, StoreUnavailable
from duequeue.drive.steps import at_once

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def queue(clock: ManualClock) -> Iterator[Queue[Any]]:
    with Queue.open("memory:", "orders", clock=clock, lease=MINUTE, codec=bytes) as queue:
        yield queue


@pytest.fixture
def fail_once(
    queue: Queue[Any], clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], None]:
    """Have an operation of the store fail once, after an hour."""

    def arrange(operation: str) -> None:
        store: Any = queue._context.store  # noqa: SLF001
        usual = getattr(store, operation)

        def fail(*_: object) -> None:
            monkeypatch.setattr(store, operation, usual)
            clock.advance(60 * MINUTE)
            raise StoreUnavailable("out for lunch")

        monkeypatch.setattr(store, operation, at_once(fail))

    return arrange


def test_a_claim(queue: Queue[Any], fail_once: Callable[[str], None]) -> None:
    queue.offer("a", b"1")
    fail_once("claim")
    delivery = queue.try_poll()
    assert delivery is not None
    assert delivery.delivered_at == START + 60 * MINUTE
    assert delivery.lease_until == START + 61 * MINUTE
    assert queue.try_poll() is None


def test_an_extension(queue: Queue[Any], fail_once: Callable[[str], None]) -> None:
    queue.offer("a", b"1")
    delivery = queue.try_poll()
    assert delivery is not None
    fail_once("extend")
    assert delivery.extend()
    assert delivery.lease_until == START + 61 * MINUTE
    assert queue.read("a").state is State.LEASED  # type: ignore[union-attr]


def test_a_release(queue: Queue[Any], fail_once: Callable[[str], None]) -> None:
    queue.offer("a", b"1")
    delivery = queue.try_poll()
    assert delivery is not None
    fail_once("release")
    assert delivery.release(MINUTE)
    assert queue.try_poll() is None


def test_what_is_in_hand_does_not_wait_for_more(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = RetryPolicy(budget=timedelta(days=1))
    with Queue.open("memory:", "orders", clock=clock, retry=patience, max_attempts=1) as queue:
        queue.offer("given up", 1)
        assert queue.try_poll() is not None
        clock.advance(60 * MINUTE)
        queue.offer_batch([Message("good", 1), Message("later", 1, MINUTE)])
        store: Any = queue._context.store  # noqa: SLF001
        bury = store.bury

        def bury_and_leave(*arguments: object, **options: object) -> Any:
            def gone(*_: object) -> None:
                raise StoreUnavailable("gone")

            monkeypatch.setattr(store, "claim", at_once(gone))
            return (yield from bury(*arguments, **options))

        monkeypatch.setattr(store, "bury", bury_and_leave)
        assert [each.key for each in queue.try_poll_many(3)] == ["good"]

"""Each statement of each call fails in turn, and a call that failed has changed nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from itertools import count
from typing import Any, TypeAlias

import psycopg
import pytest

from duequeue import ManualClock, Message, RetryPolicy
from duequeue.contract.faces import Face, QueueFace
from duequeue.contract.phrases import DAY, HOUR, MINUTE, claim
from duequeue.errors import StoreError
from tests.fixtures.failing import FAILURES, INTERRUPTED, LOCKED, rows_in
from tests.fixtures.injecting import injected
from tests.fixtures.mariadb import connected

# Returns a call that may fail again and again until it succeeds.
Scene: TypeAlias = Callable[[QueueFace, ManualClock], Callable[[], object]]

HOLD = "SELECT id FROM duequeue_kind FOR UPDATE"


def offered(queue: QueueFace, number: int = 3) -> None:
    queue.offer_batch([Message(f"old-{n}", n) for n in range(number)])


def offer(queue: QueueFace, _: ManualClock) -> Callable[[], object]:
    offered(queue)
    return lambda: queue.offer("old-1", "changed", DAY)


def offer_batch(queue: QueueFace, _: ManualClock) -> Callable[[], object]:
    offered(queue)
    batch: list[Message[Any]] = [Message(f"old-{n % 5}", n + 10, DAY) for n in range(12)]
    return lambda: queue.offer_batch(batch)


def offer_many(queue: QueueFace, _: ManualClock) -> Callable[[], object]:
    """A batch of which MariaDB is first sent only the INSERT."""
    offered(queue)
    batch: list[Message[Any]] = [Message(f"old-{n}", n + 10, DAY) for n in range(300)]
    return lambda: queue.offer_batch(batch)


def ack(queue: QueueFace, _: ManualClock) -> Callable[[], object]:
    offered(queue)
    return claim(queue).ack


def ack_many(queue: QueueFace, _: ManualClock) -> Callable[[], object]:
    offered(queue)
    held = queue.try_poll_many(3)
    return lambda: queue.ack_many(held)


def answer(queue: QueueFace, _: ManualClock) -> Callable[[], object]:
    offered(queue)
    held = claim(queue)
    return lambda: held.ack(response="done")


def bury(queue: QueueFace, _: ManualClock) -> Callable[[], object]:
    offered(queue)
    held = claim(queue)
    return lambda: held.bury("enough")


def release(queue: QueueFace, _: ManualClock) -> Callable[[], object]:
    offered(queue)
    held = claim(queue)
    return lambda: held.release(DAY)


def drop(queue: QueueFace, _: ManualClock) -> Callable[[], object]:
    offered(queue)
    return lambda: queue.drop("old-1")


def drop_all(queue: QueueFace, _: ManualClock) -> Callable[[], object]:
    offered(queue)
    return lambda: queue.drop_all(queue.name)


def expire(queue: QueueFace, clock: ManualClock) -> Callable[[], object]:
    queue.offer("short", 1, expires=timedelta(minutes=1))
    clock.advance(HOUR)
    return lambda: poll_later(queue, clock)


def poll_again(queue: QueueFace, clock: ManualClock) -> Callable[[], object]:
    """A poll of a key whose earlier message has a response, which the poll deletes."""
    offered(queue, 1)
    claim(queue).ack(response="earlier")
    offered(queue, 1)
    return lambda: poll_later(queue, clock)


def poll_later(queue: QueueFace, clock: ManualClock) -> object:
    clock.advance(10 * MINUTE)  # so that the lease of a poll that failed has ended
    return queue.try_poll()


def revive(queue: QueueFace, _: ManualClock) -> Callable[[], object]:
    offered(queue)
    claim(queue).bury("enough")
    return lambda: queue.revive("old-0")


def revive_all(queue: QueueFace, _: ManualClock) -> Callable[[], object]:
    offered(queue)
    for held in queue.try_poll_many(3):
        held.bury("enough")
    return queue.revive_all


def reschedule(queue: QueueFace, _: ManualClock) -> Callable[[], object]:
    offered(queue)
    return lambda: queue.reschedule("old-1", DAY)


SCENES: dict[str, Scene] = {
    scene.__name__: scene
    for scene in (
        *(offer, offer_batch, offer_many, ack, ack_many, answer, bury, release),
        *(drop, drop_all, expire, poll_again, revive, revive_all, reschedule),
    )
}
# All failures with a history, and the first of them without one.
CASES = [
    (store, failure, history)
    for store, failures in FAILURES.items()
    for failure in failures
    for history in ([True, False] if failure == INTERRUPTED else [True])
]


@pytest.mark.usefixtures("injectable")
@pytest.mark.parametrize(
    ("store", "failure", "history"),
    CASES,
    indirect=["store"],
    ids=lambda value: {True: "history", False: "no history"}.get(value, value),
)
@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_a_call_that_fails_has_changed_nothing(
    *,
    store: str,
    failure: str,
    store_url: str,
    face: Face,
    clock: ManualClock,
    history: bool,
    scene: Scene,
) -> None:
    if scene is offer_many and store == "sqlite":
        pytest.skip("each message is a statement of its own")
    once = RetryPolicy.never()
    with face.open(store_url, "orders", clock=clock, history=history, retry=once) as queue:
        call = scene(queue, clock)
        before, found = rows_in(store, store_url), []
        statement = FAILURES[store][failure]
        with locked(store, store_url) if failure == LOCKED else nullcontext():
            for number in count():
                # A poll goes on without the messages that it cannot settle.
                with injected(statement, number) as injection, suppress(StoreError):
                    call()
                if not injection.was_sent:
                    break
                found.append(rows_in(store, store_url))
        after = rows_in(store, store_url)
    assert after != before
    assert found[0] == before
    # A poll is several operations. The last of them fails when the expired message is gone.
    assert all(rows in ([before, after] if scene is expire else [before]) for rows in found)


@contextmanager
def locked(store: str, url: str) -> Iterator[None]:
    """Let another program hold rows that the failing statement asks for."""
    if store == "mariadb":
        with connected(url) as cursor:
            cursor.execute("BEGIN")
            cursor.execute(HOLD)
            yield
            cursor.execute("ROLLBACK")
        return
    with psycopg.connect(url) as connection:
        connection.execute(HOLD)
        yield
        connection.rollback()

"""Each statement of each call fails in turn, and a call that failed has changed nothing."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import count
from typing import Any

import psycopg
import pytest

from duequeue import ManualClock, RetryPolicy
from duequeue.contract.faces import AsyncFace, Face, QueueFace
from duequeue.contract.phrases import DAY
from duequeue.errors import StoreError
from tests.fixtures.connections import begin_again, close, connect_in_transaction
from tests.fixtures.failing import CUT, FAILURES, INTERRUPTED, LOCKED, rows_in
from tests.fixtures.injecting import injected
from tests.fixtures.mariadb import connected
from tests.sql.failing_calls import BULK_CALLS, CALLS, Ground, Scene, expire, offer_many

HOLD = "SELECT id FROM duequeue_kind FOR UPDATE"

HISTORY, NO_HISTORY, WITHIN = "history", "no history", "within"
OWN = "own"
# All failures with a history, and the first of them without one. A caller's connection that is lost
# has lost its transaction, too. Spark's calls are never within one.
CASES = [
    pytest.param(store, failure, manner, scene, id=f"{scene.__name__}-{store}-{failure}-{manner}")
    for store, failures in FAILURES.items()
    for failure in failures
    for manner in (HISTORY, NO_HISTORY, WITHIN)
    if {HISTORY: True, NO_HISTORY: failure == INTERRUPTED, WITHIN: failure != CUT}[manner]
    for scene in ([*CALLS] if manner == WITHIN else [*CALLS, *BULK_CALLS])
    if scene is not offer_many or store != "sqlite"  # where each message is a statement of its own
]


class Own:
    """A queue on its own connections, each call on which ends its transaction."""

    def __init__(self, queue: QueueFace) -> None:
        self.queue = queue

    def end(self, *, commit: bool) -> None:
        pass


class Borrowed(Own):
    """A queue within the transaction of an application."""

    def __init__(self, queue: QueueFace, connection: Any) -> None:
        super().__init__(queue.within(connection))
        self._connection = connection

    def end(self, *, commit: bool) -> None:
        """End the transaction, and begin the next one with something of the application's."""
        if commit:
            self._connection.commit()
        else:
            self._connection.rollback()
        begin_again(self._connection)
        self.queue.offer(OWN, 1, DAY)


@pytest.mark.usefixtures("injectable")
@pytest.mark.parametrize(("store", "failure", "manner", "scene"), CASES, indirect=["store"])
def test_a_call_that_fails_has_changed_nothing(
    *,
    store: str,
    failure: str,
    store_url: str,
    face: Face,
    clock: ManualClock,
    manner: str,
    scene: Scene,
) -> None:
    if scene in BULK_CALLS and isinstance(face, AsyncFace):
        pytest.skip("Spark has no awaiting face")
    history = manner != NO_HISTORY
    with ExitStack() as opened:
        queue = face.open(
            store_url, "orders", clock=clock, history=history, retry=RetryPolicy.never()
        )
        opened.callback(queue.close)
        own = Own(queue)
        if manner == WITHIN:
            connection = connect_in_transaction(store, face, store_url)
            opened.callback(close, connection)
            own = Borrowed(queue, connection)
        at = Ground(store_url, own.queue, clock, history)
        opened.callback(at.close)
        call = scene(at)
        own.end(commit=True)
        before, found = rows_in(store, store_url), []
        statement = FAILURES[store][failure]
        with locked(store, store_url) if failure == LOCKED else nullcontext():
            for number in count():
                with injected(statement, number) as injection:
                    succeeded = succeeds(call)
                if not injection.was_sent:
                    break
                assert not (succeeded and manner == WITHIN)
                found.append(rows_in(store, store_url))
                own.end(commit=succeeded)
                found.append(rows_in(store, store_url))
        own.end(commit=True)
        after = [row for row in rows_in(store, store_url) if row[1] != OWN]
    assert after != before
    assert found[0] == before
    # A poll is several operations. The last of them fails when the expired message is gone.
    assert all(rows in ([before, after] if scene is expire else [before]) for rows in found)


def succeeds(call: Callable[[], object]) -> bool:
    """Call it; a poll goes on without the messages that it cannot settle, but not within."""
    try:
        call()
    except StoreError:
        return False
    return True


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

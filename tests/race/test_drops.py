"""A drop meets offers of the same key: what it has deleted and what it returns is the same."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from typing import NamedTuple

import psycopg
import pytest

from duequeue import ManualClock, NotAnswered, OfferOutcome, Outcome
from duequeue.contract.faces import Face, QueueFace
from duequeue.contract.phrases import DAY, PATIENCE, in_background
from duequeue.contract.stage import until
from tests.fixtures.injecting import injected
from tests.fixtures.mariadb import connected
from tests.race.conftest import OpenRival
from tests.race.together import together
from tests.race.watching import WAITING_FOR_A_LOCK

ROUNDS = 200
CREATED = OfferOutcome.CREATED
DROPPED = Outcome.DROPPED
WAITING_FOR_A_NAMED_LOCK = """
    SELECT COUNT(*) FROM information_schema.processlist
    WHERE state = 'User lock' AND db = DATABASE()
"""

with_and_without_history = pytest.mark.parametrize(
    "history", [False, True], ids=["no history", "history"]
)


class Halt(NamedTuple):
    """A statement that waits for a lock, whether one waits, and how it is let go on."""

    statement: str
    waits: Callable[[], bool]
    let_go: Callable[[], object]


@contextmanager
def halt_on_postgres(url: str) -> Iterator[Halt]:
    with closing(psycopg.connect(url, autocommit=True)) as watch:
        watch.execute("SELECT pg_advisory_lock(7)")

        def waits() -> bool:
            return watch.execute(WAITING_FOR_A_LOCK).fetchone() == (1,)

        let_go = partial(watch.execute, "SELECT pg_advisory_unlock(7)")
        yield Halt("SELECT pg_advisory_xact_lock(7)", waits, let_go)


@contextmanager
def halt_on_mariadb(url: str) -> Iterator[Halt]:
    with connected(url) as watch:
        watch.execute("SELECT GET_LOCK('halt', 0)")

        def waits() -> bool:
            watch.execute(WAITING_FOR_A_NAMED_LOCK)
            return watch.fetchone() == (1,)

        halt = f"DO GET_LOCK('halt', {PATIENCE}), RELEASE_LOCK('halt')"
        yield Halt(halt, waits, partial(watch.execute, "DO RELEASE_LOCK('halt')"))


HALTS = {"postgres": halt_on_postgres, "mariadb": halt_on_mariadb}


@pytest.mark.usefixtures("injectable")
@pytest.mark.parametrize("store", HALTS, indirect=True)
@with_and_without_history
def test_a_message_that_is_offered_between_two_statements_of_a_drop(
    store: str,
    store_url: str,
    face: Face,
    clock: ManualClock,
    open_rival: OpenRival,
    *,
    history: bool,
) -> None:
    rival = open_rival(history=history)
    with face.open(store_url, "orders", clock=clock, history=history) as queue:
        queue.drop("a")  # which opens a connection, and clears old responses away
        for number in count():
            with HALTS[store](store_url) as halt:
                dropping = in_background(partial(drop_with, halt.statement, number, queue))
                until(partial(either, dropping.done, halt.waits))
                assert rival.offer("a", number, DAY) is CREATED
                halt.let_go()
                was_dropped, was_halted = dropping.result(PATIENCE)
            assert rival.contains("a") is not was_dropped
            assert was_refused(rival) is was_dropped
            if history:
                rows = [row.outcome for row in rival.history(1000)]
                assert rows.count(DROPPED) == number + was_dropped
            rival.drop("a")
            if not was_halted:
                break
            rival.forget_response("a")
    assert number > 1


def drop_with(statement: str, number: int, queue: QueueFace) -> tuple[bool, bool]:
    """Drop, and return whether that was halted by the statement, too."""
    with injected(statement, number) as injection:
        return queue.drop("a"), injection.was_sent


def either(first: Callable[[], bool], second: Callable[[], bool]) -> bool:
    return first() or second()


def was_refused(queue: QueueFace) -> bool:
    """Return whether a response says that the message was dropped."""
    try:
        queue.response("a", 0)
    except NotAnswered:
        return True
    return False


@with_and_without_history
def test_each_message_is_dropped_once_or_left(open_rival: OpenRival, *, history: bool) -> None:
    queues = [open_rival(history=history) for _ in range(4)]

    def offers(queue: QueueFace) -> int:
        return [queue.offer("a", number, DAY) for number in range(ROUNDS)].count(CREATED)

    def drops(queue: QueueFace) -> int:
        return [queue.drop("a") for _ in range(ROUNDS)].count(True)

    first, second, *dropped = together(
        *(partial(offers, queue) for queue in queues[:2]),
        *(partial(drops, queue) for queue in queues[2:]),
    )
    left = queues[0].stats().total
    assert first + second == sum(dropped) + left
    if history:
        rows = [row.outcome for row in queues[0].history(10 * ROUNDS)]
        assert rows.count(DROPPED) == sum(dropped)

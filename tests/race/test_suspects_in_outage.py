"""While a suspect's store is out, the consumers of another store in the same process go on."""

from collections.abc import Iterator

import pytest

from duequeue import ManualClock, Message, RetryPolicy
from duequeue.contract.faces import Face, QueueFace
from duequeue.contract.fixtures import Consume
from duequeue.contract.phrases import DAY, DEFAULT_LEASE, MINUTE
from duequeue.contract.stage import Scene, Stage, until, until_gone
from duequeue.contract.test_events import Diary
from duequeue.events.events import Delivered
from tests.fixtures.mariadb import MariaDBServer
from tests.fixtures.postgres import PostgresServer

Stoppable = PostgresServer | MariaDBServer

PATIENT = RetryPolicy(budget=DAY)
SUSPECTS = ["suspect-1", "suspect-2"]

pytestmark = pytest.mark.parametrize("store", ["sqlite"], indirect=True)


@pytest.fixture
def frail(face: Face, frail_url: str, clock: ManualClock) -> Iterator[QueueFace]:
    """A queue on a server that may be stopped, for which calls wait as long as it takes."""
    with face.open(frail_url, "orders", clock=clock, retry=PATIENT) as queue:
        yield queue


def offer_suspects(queue: QueueFace, clock: ManualClock) -> None:
    """Offer messages that have lost two leases, and are due first."""
    due = clock.now() - MINUTE
    queue.offer_batch([Message(key, 1, due) for key in SUSPECTS])
    for _ in range(2):
        assert len(queue.try_poll_many(2)) == 2
        clock.advance(DEFAULT_LEASE)


def begun(stage: Stage, key: str) -> Scene:
    """Wait until the handler is called with this message, which must be the next one."""
    scene = stage.next()
    assert scene.delivery.key == key
    return scene


def offer_beside_a_suspect(queue: QueueFace, stage: Stage) -> None:
    """Offer a message that a consumer fetches and may not begin."""
    queue.offer("held up", 1)
    until(lambda: queue.stats().leased == 1)
    assert stage.is_empty()


def test_others_go_on_when_a_suspect_was_handled_and_cannot_be_settled(
    *,
    stoppable: Stoppable,
    frail: QueueFace,
    queue: QueueFace,
    stage: Stage,
    consume: Consume,
    clock: ManualClock,
) -> None:
    offer_suspects(frail, clock)
    consume(queue)
    consume(frail)
    first = begun(stage, "suspect-1")
    offer_beside_a_suspect(queue, stage)
    with stoppable.stopped():
        assert stage.is_empty()
        first.end()
        begun(stage, "held up").end()
        until_gone(queue, "held up")
        queue.offer("later", 1)
        begun(stage, "later").end()
    begun(stage, "suspect-2").end()
    until(lambda: frail.stats().total == 0)
    assert frail.stats().buried == 0


def test_others_go_on_while_a_suspect_cannot_be_leased(
    *,
    stoppable: Stoppable,
    frail: QueueFace,
    queue: QueueFace,
    stage: Stage,
    consume: Consume,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    offer_suspects(frail, clock)
    queue.offer("long", 1)
    consume(queue)
    long = begun(stage, "long")
    diary = Diary(frail)
    consume(frail)
    assert {diary.next(Delivered).key for _ in SUSPECTS} == set(SUSPECTS)
    until(lambda: frail.stats().due == 2)  # given back until one of them may be alone
    with stoppable.stopped():
        long.end()
        until(lambda: "the store is unavailable" in caplog.text)
        queue.offer("later", 1)
        begun(stage, "later").end()
    for key in SUSPECTS:
        begun(stage, key).end()
    until(lambda: frail.stats().total == 0)


def test_a_suspect_does_not_wait_for_another_store_that_is_out(
    *,
    stoppable: Stoppable,
    frail: QueueFace,
    queue: QueueFace,
    stage: Stage,
    consume: Consume,
    clock: ManualClock,
) -> None:
    offer_suspects(queue, clock)
    frail.offer("only attempt", 1)
    consume(frail, max_attempts=1)
    only = begun(stage, "only attempt")
    with stoppable.stopped():
        only.end()
        consume(queue)
        for key in SUSPECTS:
            begun(stage, key).end()
        until(lambda: queue.stats().total == 0)
    until_gone(frail, "only attempt")

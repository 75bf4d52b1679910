"""No script reads more than 16 MiB of messages, unless a single one is larger."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from duequeue import OfferOutcome
from duequeue.backends import backend_for
from duequeue.bulk.port import KEY, Conditions, SnapshotQuery
from duequeue.bulk.redis import BulkRedisBackend
from duequeue.port.store import Answer, Burial, Claimed, Expiry, Lease, Record, Steps, Store
from duequeue.stores.redis.commands import MOST_BYTES
from tests.fixtures.redis_server import RedisServer, scripts_run
from tests.redis.waiting import KIND

SIZE = 1024 * 1024
MANY = 2 * MOST_BYTES // SIZE + 2
SCRIPTS = 3
LARGE = b"x" * SIZE


class Stage:
    """A store on a server that counts its calls."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self.url = server.fresh_url()
        backend: Any = backend_for(self.url)
        self._session = backend.session()
        self.history: Any = self.run(partial(backend.open_history, migrate=True))
        opening = partial(backend.open_store, KIND, 1, migrate=True, history=True)
        self.store: Store = self.run(opening)

    def run(self, operation: Callable[[], Any]) -> Any:
        return self._session.run(operation)

    def scripts_of(self, operation: Callable[[], Any]) -> tuple[Any, int]:
        """Run an operation, and count its scripts."""
        return self.counted(partial(self.run, operation))

    def counted(self, call: Callable[[], Any]) -> tuple[Any, int]:
        """Make a call, and count its scripts."""
        self._server.ask("CONFIG", "RESETSTAT")
        return call(), scripts_run(self._server)

    def leases(self) -> list[Lease]:
        """Store large messages, and claim all of them."""
        self.offer([Record(str(number), LARGE, 0, expires_at=1) for number in range(MANY)])
        claimed: list[Claimed] = []
        while len(claimed) < MANY:
            claimed += self.run(partial(self.store.claim, MANY, 1, 10, 7))
        return [each.lease for each in claimed]

    def offer(self, records: Sequence[Record]) -> None:
        for each in records:
            self.run(partial(self.store.offer, [each], 1))

    def close(self) -> None:
        self._session.close()


@pytest.fixture
def stage(frail_redis: RedisServer) -> Iterator[Stage]:
    stage = Stage(frail_redis)
    yield stage
    stage.close()
    frail_redis.ask("FLUSHALL")


def ack(store: Store, leases: list[Lease]) -> Steps[set[int]]:
    return store.ack(leases, 1)


def answer(store: Store, leases: list[Lease]) -> Steps[set[int]]:
    return store.answer([Answer(each, b"1", 100) for each in leases], 1)


def bury(store: Store, leases: list[Lease]) -> Steps[set[int]]:
    return store.bury([Burial(each, 1, "why", 100) for each in leases], 1)


def expire(store: Store, leases: list[Lease]) -> Steps[set[int]]:
    return store.expire([Expiry(each, 1) for each in leases], 1)


@pytest.mark.parametrize("settle", [ack, answer, bury, expire])
def test_messages_are_settled_in_several_scripts(
    stage: Stage, settle: Callable[[Store, list[Lease]], Steps[set[int]]]
) -> None:
    leases = stage.leases()
    won, scripts = stage.scripts_of(partial(settle, stage.store, leases))
    assert won == {each.id for each in leases}
    assert scripts == SCRIPTS
    assert len(stage.run(partial(stage.store.settled, MANY + 1))) == MANY


def test_long_responses_are_stored_in_several_scripts(stage: Stage) -> None:
    stage.offer([Record(str(number), b"1", 0) for number in range(MANY)])
    leases = [each.lease for each in stage.run(partial(stage.store.claim, MANY, 1, 10, 7))]
    answers = [Answer(each, LARGE, 100) for each in leases]
    won, scripts = stage.scripts_of(partial(stage.store.answer, answers, 1))
    assert won == {each.id for each in leases}
    assert scripts == SCRIPTS


def test_what_large_messages_are_replaced_by_is_stored_in_several_scripts(stage: Stage) -> None:
    records = [Record(str(number), LARGE, 0) for number in range(MANY)]
    stage.offer(records)
    updates = [each._replace(payload=b"1") for each in records]
    outcomes, scripts = stage.scripts_of(partial(stage.store.offer, updates, 1))
    assert outcomes == [OfferOutcome.UPDATED] * MANY
    assert scripts == SCRIPTS


def test_large_messages_are_dropped_in_several_scripts(stage: Stage) -> None:
    stage.offer([Record(str(number), LARGE, 0) for number in range(MANY)])
    dropped, scripts = stage.scripts_of(partial(stage.store.drop_all, 1))
    assert dropped == MANY
    assert scripts == SCRIPTS + 1  # the last finds nothing
    assert len(stage.run(partial(stage.store.settled, MANY + 1))) == MANY


def test_large_burials_are_read_and_purged_in_several_scripts(stage: Stage) -> None:
    stage.run(partial(bury, stage.store, stage.leases()))
    reasons, scripts = stage.scripts_of(partial(stage.history.burial_reasons, 0, 10))
    assert [each.burials for each in reasons] == [MANY]
    assert scripts == 1 + SCRIPTS  # the first reads the kinds
    purged, scripts = stage.scripts_of(partial(stage.store.burials.purge, 2))
    assert purged == MANY
    assert scripts == SCRIPTS


@pytest.mark.parametrize("with_payload", [True, False])
def test_messages_are_selected_in_several_scripts(stage: Stage, *, with_payload: bool) -> None:
    keys = [str(number) for number in range(MANY)]
    stage.offer([Record(key, LARGE, 0) for key in keys])
    snapshots = BulkRedisBackend(stage.url).snapshots(kind_id=1)
    (part,) = snapshots.plan(range(0), 1, 1.0)
    query = SnapshotQuery(with_payload, Conditions(keys=["nothing", *keys, "nothing else"]))
    pages, scripts = stage.counted(lambda: list(snapshots.read(part, MANY, query)))
    assert [key for page in pages for key in page[KEY]] == keys
    assert scripts == 1 + SCRIPTS  # the first reads the name of the queue

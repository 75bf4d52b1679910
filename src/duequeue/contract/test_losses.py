"""The port counts the leases in a row that a message has lost, in the last digit of its token."""

from collections.abc import Iterator
from functools import partial

import pytest

from duequeue.backends import backend_for
from duequeue.contract.fixtures import START
from duequeue.instants import to_millis
from duequeue.port.fencing import LOST_IN_HAND, losses_of, new_token
from duequeue.port.store import Claimed, Record, Release, Session, Store

LEASE = 1000
OFFERED = to_millis(START)


class Holder:
    """A store whose clock passes with every claim, so that each finds that the last lease ended."""

    def __init__(self, session: Session, store: Store) -> None:
        self.session = session
        self.store = store
        self.now = OFFERED

    def offer(self, *keys: str) -> None:
        records = [Record(key, b"1", OFFERED) for key in keys]
        self.session.run(partial(self.store.offer, records, OFFERED))

    def claim(self, *, ahead: bool = True) -> list[Claimed]:
        self.now += LEASE
        until, token = self.now + LEASE, new_token(fetched_ahead=ahead)
        return self.session.run(partial(self.store.claim, 10, self.now, until, token))

    def losses(self, *, ahead: bool = True) -> list[int]:
        return [losses_of(each.lease.token) for each in self.claim(ahead=ahead)]


@pytest.fixture
def holder(store_url: str) -> Iterator[Holder]:
    backend = backend_for(store_url)
    session = backend.session()
    opening = partial(backend.open_store, "orders|json", LEASE, migrate=True, history=False)
    try:
        yield Holder(session, session.run(opening))
    finally:
        session.close()


def test_leases_that_end_are_counted_up_to_three(holder: Holder) -> None:
    holder.offer("a")
    assert [holder.losses() for _ in range(6)] == [[0], [1], [2], [3], [3], [3]]


def test_a_message_that_was_in_hand_is_told_from_one_that_was_fetched_ahead(holder: Holder) -> None:
    holder.offer("a")
    assert holder.losses(ahead=False) == [0]
    assert holder.losses() == [LOST_IN_HAND]
    assert holder.losses(ahead=False) == [3]
    assert holder.losses(ahead=False) == [LOST_IN_HAND]


def test_the_messages_of_a_claim_are_counted_one_by_one(holder: Holder) -> None:
    holder.offer("a")
    holder.claim()
    holder.offer("b")
    assert holder.losses() == [1, 0]
    assert holder.losses() == [2, 1]


def test_a_lease_holds_whatever_the_count(holder: Holder) -> None:
    holder.offer("a", "b", "c", "d")
    holder.claim()
    holder.claim()
    leases = [each.lease for each in holder.claim()]
    extended = holder.session.run(partial(holder.store.extend, leases, holder.now + 2 * LEASE))
    assert extended.won == {each.id for each in leases}
    won = holder.session.run(partial(holder.store.ack, leases[:2], holder.now))
    assert won == {each.id for each in leases[:2]}
    releases = [Release(each, OFFERED) for each in leases[2:]]
    assert holder.session.run(partial(holder.store.release, releases)) == {
        each.id for each in leases[2:]
    }


def test_a_release_starts_the_count_anew(holder: Holder) -> None:
    holder.offer("a")
    holder.claim()
    (found,) = holder.claim()
    holder.session.run(partial(holder.store.release, [Release(found.lease, OFFERED)]))
    assert holder.losses() == [0]


@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "in hand"])
@pytest.mark.parametrize("lost", range(4))
def test_giving_back_undoes_a_claim(holder: Holder, lost: int, ahead: bool) -> None:
    holder.offer("a")
    for _ in range(lost):
        holder.claim()
    (first,) = holder.claim(ahead=ahead)
    holder.session.run(partial(holder.store.give_back, [first.lease]))
    assert not holder.session.run(partial(holder.store.ack, [first.lease], holder.now))
    (again,) = holder.claim()
    assert losses_of(first.lease.token) == losses_of(again.lease.token) == lost
    assert first.attempt == again.attempt == lost + 1


def test_an_update_starts_the_count_anew(holder: Holder) -> None:
    holder.offer("a")
    holder.claim()
    holder.claim()
    records = [Record("a", b"2", OFFERED)]
    holder.session.run(partial(holder.store.offer, records, holder.now))
    assert holder.losses() == [0]

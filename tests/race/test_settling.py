"""A holder and a rival reach for the same message: one of them wins, and nothing is lost."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import psycopg
import pytest

from duequeue import ManualClock, Message, OfferOutcome, State
from duequeue.contract.faces import DeliveryFace, QueueFace
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import DEFAULT_LEASE, MINUTE, claim, snapshot
from tests.race.conftest import OpenRival
from tests.race.together import PATIENCE, alternating
from tests.race.watching import WAITING_FOR_A_LOCK, until_one

CREATED, UPDATED = OfferOutcome.CREATED, OfferOutcome.UPDATED

ROUNDS = 60
KEYS = [f"order-{number:03}" for number in range(ROUNDS)]


@pytest.fixture
def holder(open_rival: OpenRival) -> QueueFace:
    return open_rival()


@pytest.fixture
def rival(open_rival: OpenRival) -> QueueFace:
    """A queue with connections of its own."""
    return open_rival()


@pytest.fixture
def rounds(holder: QueueFace) -> Iterator[tuple[int, DeliveryFace]]:
    """A number and a lease for each round."""
    holder.offer_batch([Message(key, "old", START) for key in KEYS])
    return enumerate(holder.try_poll_many(ROUNDS))


@pytest.fixture
def late_rounds(holder: QueueFace, clock: ManualClock) -> Iterator[tuple[int, DeliveryFace]]:
    """The same with leases that have just run out, on the only message there is."""

    def rounds() -> Iterator[tuple[int, DeliveryFace]]:
        for number, key in enumerate(KEYS):
            holder.offer(key, "old", START)
            held = claim(holder)
            clock.advance(DEFAULT_LEASE)
            yield number, held

    return rounds()


def test_ack_against_update(rounds: Iterator[tuple[int, DeliveryFace]], rival: QueueFace) -> None:
    for number, held in rounds:
        update = partial(rival.offer, held.key, "new", START)
        outcomes = alternating(number, held.ack, update)
        assert outcomes in {(True, CREATED), (False, UPDATED)}
        stored = snapshot(rival, held.key)
        assert (stored.payload, stored.state, stored.attempts) == ("new", State.DUE, 0)


def test_ack_against_ack(rounds: Iterator[tuple[int, DeliveryFace]], rival: QueueFace) -> None:
    for number, held in rounds:
        assert sorted(alternating(number, held.ack, held.ack)) == [False, True]
    assert rival.stats().total == 0


def test_late_ack_against_the_next_holder(
    late_rounds: Iterator[tuple[int, DeliveryFace]], rival: QueueFace
) -> None:
    for number, held in late_rounds:
        won, found = alternating(number, held.ack, rival.try_poll)
        assert won is (found is None)
        if found is not None:
            assert (found.key, found.attempt) == (held.key, 2)
            assert found.ack()
    assert rival.stats().total == 0


def test_late_extend_against_the_next_holder(
    late_rounds: Iterator[tuple[int, DeliveryFace]], rival: QueueFace
) -> None:
    for number, held in late_rounds:
        won, found = alternating(number, held.extend, rival.try_poll)
        assert won is (found is None)
        assert [held.ack(), found is not None and found.ack()] == [won, not won]
    assert rival.stats().total == 0


def test_ack_against_drop_and_identical_offer(
    rounds: Iterator[tuple[int, DeliveryFace]], rival: QueueFace
) -> None:
    def drop_and_offer(key: str) -> tuple[bool, OfferOutcome]:
        return rival.drop(key), rival.offer(key, "old", START)

    for number, held in rounds:
        acked, (dropped, outcome) = alternating(number, held.ack, partial(drop_and_offer, held.key))
        assert acked is not dropped
        assert outcome is CREATED
        stored = snapshot(rival, held.key)
        assert (stored.state, stored.attempts) == (State.DUE, 0)


def test_bury_against_update(rounds: Iterator[tuple[int, DeliveryFace]], rival: QueueFace) -> None:
    for number, held in rounds:
        update = partial(rival.offer, held.key, "new", START)
        won, outcome = alternating(number, partial(held.bury, "enough"), update)
        assert (won, outcome) in {(True, CREATED), (False, UPDATED)}
        assert snapshot(rival, held.key).payload == "new"
        buried = [one.payload for one in rival.buried(ROUNDS) if one.key == held.key]
        assert buried == (["old"] if won else [])


def test_release_against_update(
    rounds: Iterator[tuple[int, DeliveryFace]], rival: QueueFace
) -> None:
    for number, held in rounds:
        update = partial(rival.offer, held.key, "new", START)
        _, outcome = alternating(number, partial(held.release, MINUTE), update)
        assert outcome is UPDATED
        stored = snapshot(rival, held.key)
        assert (stored.payload, stored.state, stored.attempts) == ("new", State.DUE, 0)


def test_revive_against_revive(
    rounds: Iterator[tuple[int, DeliveryFace]], holder: QueueFace, rival: QueueFace
) -> None:
    for number, held in rounds:
        assert held.bury("enough")
        revived = alternating(
            number, partial(holder.revive, held.key), partial(rival.revive, held.key)
        )
        assert sorted(revived) == [False, True]
        assert snapshot(rival, held.key).state is State.DUE
    assert (rival.stats().total, rival.stats().buried) == (ROUNDS, 0)


def test_ack_against_reschedule(
    rounds: Iterator[tuple[int, DeliveryFace]], rival: QueueFace
) -> None:
    for number, held in rounds:
        reschedule = partial(rival.reschedule, held.key, MINUTE)
        acked, moved = alternating(number, held.ack, reschedule)
        assert acked != moved
        assert rival.contains(held.key) is moved


def test_all_revived_by_two_at_once(
    rounds: Iterator[tuple[int, DeliveryFace]], holder: QueueFace, rival: QueueFace
) -> None:
    for number, held in rounds:
        assert held.bury("enough")
        if number % 10 == 9:
            assert sum(alternating(number, holder.revive_all, rival.revive_all)) == 10
    assert (rival.stats().total, rival.stats().buried) == (ROUNDS, 0)


def test_a_burial_is_either_revived_or_deleted(
    rounds: Iterator[tuple[int, DeliveryFace]], holder: QueueFace, rival: QueueFace
) -> None:
    for number, held in rounds:
        assert held.bury("enough")
        [burial] = rival.buried(9)
        revive = partial(holder.revive, held.key, id=burial.id)
        revived, deleted = alternating(number, revive, partial(rival.delete_buried, burial.id))
        assert revived != deleted
        assert rival.contains(held.key) is revived


def test_revive_against_offer(
    rounds: Iterator[tuple[int, DeliveryFace]], holder: QueueFace, rival: QueueFace
) -> None:
    for number, held in rounds:
        assert held.bury("enough")
        update = partial(rival.offer, held.key, "new", START)
        outcomes = alternating(number, partial(holder.revive, held.key), update)
        assert outcomes in {(True, UPDATED), (False, CREATED)}
        assert snapshot(rival, held.key).payload == "new"


def ack_of_two_claims(held: DeliveryFace, other: DeliveryFace, holder: QueueFace) -> bool:
    return holder.ack_many([held, other]) == 2


SETTLEMENTS: dict[str, Callable[[DeliveryFace, DeliveryFace, QueueFace], bool]] = {
    "ack": lambda held, _, __: held.ack(),
    "ack of two claims": ack_of_two_claims,
    "release": lambda held, _, __: held.release(),
    "bury": lambda held, _, __: held.bury("broken"),
}


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
@pytest.mark.parametrize("settle", SETTLEMENTS.values(), ids=SETTLEMENTS)
def test_a_settlement_that_waits_for_an_update_loses(
    holder: QueueFace,
    store_url: str,
    watch: psycopg.Connection,
    settle: Callable[[DeliveryFace, DeliveryFace, QueueFace], bool],
) -> None:
    """Its statement began before the update was committed, and must look at the row again."""
    holder.offer("a", "old", START)
    held = claim(holder)
    holder.offer("b", "old", START)
    other = claim(holder)
    with (
        psycopg.connect(store_url) as connection,
        ThreadPoolExecutor(1) as thread,
    ):
        connection.execute(
            "UPDATE duequeue_message SET payload = '\"new\"', lease_token = 0 WHERE key = 'a'"
        )
        settled = thread.submit(settle, held, other, holder)
        until_one(watch, WAITING_FOR_A_LOCK)
        connection.commit()
        assert not settled.result(PATIENCE)
    stored = snapshot(holder, "a")
    assert (stored.payload, stored.attempts) == ("new", 1)

"""Buried: parked with a reason, looked at, revived or purged."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from duequeue import ManualClock, Message, OfferOutcome, State
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import (
    DAY,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    claim,
    keys_of,
    snapshot,
)


def bury(queue: QueueFace, key: str, payload: object = 1, reason: str = "enough") -> None:
    queue.offer(key, payload)
    delivery = claim(queue)
    assert delivery.key == key
    assert delivery.bury(reason)


def test_a_buried_message_is_kept_with_reason_and_attempts(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", {"n": 1}, START - MINUTE)
    claim(queue).release()
    clock.advance(HOUR)
    assert claim(queue).bury("the printer \N{FIRE} burns")
    [buried] = queue.buried(10)
    assert (buried.key, buried.payload, buried.raw) == ("a", {"n": 1}, b'{"n":1}')
    assert (buried.due_at, buried.buried_at) == (START - MINUTE, START + HOUR)
    assert (buried.attempts, buried.reason) == (2, "the printer \N{FIRE} burns")


def test_a_buried_message_is_out_of_the_queue(queue: QueueFace, clock: ManualClock) -> None:
    bury(queue, "a")
    clock.advance(DAY)
    assert queue.try_poll() is None
    assert not queue.contains("a")
    assert not queue.drop("a")
    assert queue.drop_all(queue.name) == 0
    stats = queue.stats()
    assert (stats.total, stats.due, stats.leased, stats.future, stats.buried) == (0, 0, 0, 0, 1)
    assert keys_of(queue.buried(10)) == ["a"]


def test_a_buried_key_is_free(queue: QueueFace) -> None:
    bury(queue, "a", 1)
    assert queue.offer("a", 1, START) is OfferOutcome.CREATED
    assert queue.offer_batch([Message("a", 1, START)]) == [OfferOutcome.IGNORED]
    stats = queue.stats()
    assert (stats.total, stats.buried) == (1, 1)
    delivery = claim(queue)
    assert (delivery.attempt, delivery.ack()) == (1, True)
    assert queue.stats().buried == 1


def test_the_oldest_burial_is_listed_first(queue: QueueFace, clock: ManualClock) -> None:
    for key in "bac":
        bury(queue, key)
        clock.advance(SECOND)
    assert keys_of(queue.buried(10)) == ["b", "a", "c"]
    assert keys_of(queue.buried(2)) == ["b", "a"]


def test_burials_of_one_instant_are_listed_in_the_order_they_happened(queue: QueueFace) -> None:
    for key in "bac":
        bury(queue, key)
    assert keys_of(queue.buried(10)) == ["b", "a", "c"]


def test_no_burials_are_listed_when_none_are_asked_for(queue: QueueFace) -> None:
    bury(queue, "a")
    assert queue.buried(0) == []
    assert queue.buried(-1) == []


def bury_each(queue: QueueFace, clock: ManualClock, **reasons: str) -> None:
    """Bury messages for their reasons, a second apart."""
    for key, reason in reasons.items():
        bury(queue, key, reason=reason)
        clock.advance(SECOND)


def test_burials_are_listed_page_by_page(queue: QueueFace, clock: ManualClock) -> None:
    for key in "bac":
        bury(queue, key)
    clock.advance(SECOND)
    for key in "fed":
        bury(queue, key)
    found: list[str] = []
    page = queue.buried(2)
    while page:
        found += keys_of(page)
        page = queue.buried(2, after=page[-1].id)
    assert found == ["b", "a", "c", "f", "e", "d"]


def test_a_page_goes_on_after_a_burial_that_is_gone(queue: QueueFace, clock: ManualClock) -> None:
    bury_each(queue, clock, a="x", b="x", c="x")
    first, second, _ = queue.buried(10)
    assert queue.revive("a", id=first.id)
    assert queue.delete_buried(second.id)
    assert keys_of(queue.buried(10, after=first.id)) == ["c"]
    assert keys_of(queue.buried(10, after=second.id)) == ["c"]


def test_burials_are_listed_by_a_text_in_their_reason(queue: QueueFace, clock: ManualClock) -> None:
    timeout = "max_attempts: failed 5 times, the last time with\nTimeoutError: 100% of 3_0 s"
    bury_each(queue, clock, a=timeout, b="a negative total", c=timeout, d="TIMEOUTERROR", e="30")
    assert keys_of(queue.buried(10, reason="TimeoutError")) == ["a", "c"]
    assert keys_of(queue.buried(10, reason=timeout)) == ["a", "c"]
    assert keys_of(queue.buried(10, reason="a neg")) == ["b"]
    assert keys_of(queue.buried(10, reason="100%")) == ["a", "c"]
    assert keys_of(queue.buried(10, reason="3_0")) == ["a", "c"]
    assert keys_of(queue.buried(10, reason="%")) == ["a", "c"]
    assert keys_of(queue.buried(10, reason="")) == ["a", "b", "c", "d", "e"]
    assert queue.buried(10, reason="nothing of the kind") == []
    [first] = queue.buried(1, reason="TimeoutError")
    assert keys_of(queue.buried(10, after=first.id, reason="TimeoutError")) == ["c"]


def test_a_reason_is_found_as_it_was_given(queue: QueueFace) -> None:
    bury(queue, "a", reason="NUL \0 and \ud800")
    assert keys_of(queue.buried(10, reason="\0 and \ud800")) == ["a"]


def test_nothing_is_buried_at_first(queue: QueueFace) -> None:
    assert queue.buried(10) == []
    assert queue.stats().buried == 0


def test_a_revived_message_is_due_now_as_if_never_delivered(
    queue: QueueFace, clock: ManualClock
) -> None:
    bury(queue, "a", "payload")
    clock.advance(HOUR)
    assert queue.revive("a")
    assert queue.buried(10) == []
    assert queue.stats().buried == 0
    delivery = claim(queue)
    assert (delivery.payload, delivery.due_at) == ("payload", START + HOUR)
    assert (delivery.attempt, delivery.redelivered) == (1, False)
    assert delivery.ack()


@pytest.mark.parametrize("due", [START + HOUR, HOUR], ids=["instant", "duration"])
def test_a_message_may_be_revived_for_later(
    queue: QueueFace, clock: ManualClock, due: datetime | timedelta
) -> None:
    bury(queue, "a")
    assert queue.revive("a", due)
    assert queue.try_poll() is None
    clock.advance(HOUR)
    assert claim(queue).due_at == START + HOUR


def test_an_identical_offer_after_a_revival_is_ignored(queue: QueueFace) -> None:
    bury(queue, "a", 1)
    queue.revive("a", START)
    assert queue.offer("a", 1, START) is OfferOutcome.IGNORED


def test_there_must_be_something_to_revive(queue: QueueFace) -> None:
    assert not queue.revive("a")
    bury(queue, "a")
    assert queue.revive("a")
    assert not queue.revive("a")


def test_a_live_key_is_not_overwritten_by_a_revival(queue: QueueFace) -> None:
    bury(queue, "a", "old")
    queue.offer("a", "new")
    assert not queue.revive("a")
    assert snapshot(queue, "a").payload == "new"
    assert queue.stats().buried == 1


def test_the_most_recent_burial_of_a_key_is_revived(queue: QueueFace, clock: ManualClock) -> None:
    for payload in ("first", "second"):
        bury(queue, "a", payload)
        clock.advance(SECOND)
    assert queue.revive("a")
    assert claim(queue).payload == "second"
    assert [buried.payload for buried in queue.buried(10)] == ["first"]


def test_of_burials_at_one_instant_the_later_one_is_revived(queue: QueueFace) -> None:
    bury(queue, "a", "first")
    bury(queue, "a", "second")
    assert queue.revive("a")
    assert claim(queue).payload == "second"


def test_of_burials_alike_in_everything_the_later_one_is_revived(queue: QueueFace) -> None:
    for key in "aba":
        bury(queue, key)
    assert queue.revive("a")
    assert keys_of(queue.buried(10)) == ["a", "b"]


def test_exactly_the_burial_with_the_id_is_revived(queue: QueueFace, clock: ManualClock) -> None:
    for payload in ("first", "second", "third"):
        bury(queue, "a", payload)
        clock.advance(SECOND)
    assert queue.revive("a", id=queue.buried(10)[1].id)
    assert [one.payload for one in queue.buried(10)] == ["first", "third"]
    delivery = claim(queue)
    assert (delivery.payload, delivery.attempt, delivery.ack()) == ("second", 1, True)
    assert queue.revive("a", due=HOUR, id=queue.buried(10)[0].id)
    assert snapshot(queue, "a").payload == "first"


def test_of_burials_alike_in_everything_the_one_with_the_id_is_revived(queue: QueueFace) -> None:
    for key in "aba":
        bury(queue, key)
    first = queue.buried(10)[0]
    assert queue.revive("a", id=first.id)
    assert keys_of(queue.buried(10)) == ["b", "a"]
    assert first not in queue.buried(10)


def test_a_burial_is_revived_by_its_id_only_once_and_only_under_its_key(queue: QueueFace) -> None:
    bury(queue, "a")
    bury(queue, "b")
    [first, _] = queue.buried(10)
    assert not queue.revive("b", id=first.id)
    assert queue.revive("a", id=first.id)
    assert not queue.revive("a", id=first.id)
    claim(queue).ack()
    assert not queue.revive("a", id=first.id)
    assert queue.stats().buried == 1


def test_an_id_is_not_used_again(queue: QueueFace, clock: ManualClock) -> None:
    bury(queue, "a", "old")
    [old] = queue.buried(10)
    assert queue.delete_buried(old.id)
    clock.advance(SECOND)
    bury(queue, "a", "new")
    assert not queue.revive("a", id=old.id)
    assert not queue.delete_buried(old.id)
    assert queue.stats().buried == 1


def test_a_live_key_is_not_overwritten_by_a_revival_by_id(queue: QueueFace) -> None:
    bury(queue, "a", "old")
    queue.offer("a", "new")
    assert not queue.revive("a", id=queue.buried(1)[0].id)
    assert snapshot(queue, "a").payload == "new"
    assert queue.stats().buried == 1


def test_one_burial_is_deleted(queue: QueueFace) -> None:
    for key in "aba":
        bury(queue, key)
    first = queue.buried(10)[0]
    assert queue.delete_buried(first.id)
    assert not queue.delete_buried(first.id)
    assert keys_of(queue.buried(10)) == ["b", "a"]
    assert queue.stats().total == 0


def test_the_burials_of_another_queue_are_out_of_reach(open_queue: OpenQueue) -> None:
    ours, theirs = open_queue(), open_queue("invoices")
    bury(ours, "a")
    bury(theirs, "a")
    burial = ours.buried(1)[0].id
    assert burial != theirs.buried(1)[0].id
    assert not theirs.delete_buried(burial)
    assert not theirs.revive("a", id=burial)
    assert theirs.revive_all() == 1
    assert ours.stats().buried == 1


@pytest.mark.parametrize(
    "text", ["", "1", "a.b", "1.2.3", "1.-2", "1.2 ", "\u0661.2", "9" * 19 + ".1", f"{2**63 - 1}.1"]
)
def test_an_id_that_no_burial_has_is_refused(queue: QueueFace, text: str) -> None:
    for argument, call in (
        ("after", lambda: queue.buried(10, after=text)),
        ("id", lambda: queue.revive("a", id=text)),
        ("id", lambda: queue.delete_buried(text)),
    ):
        with pytest.raises(ValueError, match=f"^{argument} must be the id of a buried message"):
            call()


def test_all_burials_are_revived_in_their_order(queue: QueueFace, clock: ManualClock) -> None:
    bury_each(queue, clock, b="x", a="y", c="z")
    assert queue.revive_all() == 3
    assert queue.buried(10) == []
    deliveries = queue.try_poll_many(10)
    assert keys_of(deliveries) == ["b", "a", "c"]
    assert {(one.attempt, one.due_at) for one in deliveries} == {(1, START + 3 * SECOND)}
    assert queue.revive_all() == 0


def test_all_burials_with_a_reason_are_revived_for_later(
    queue: QueueFace, clock: ManualClock
) -> None:
    bury_each(queue, clock, a="timeout", b="a negative total", c="timeout, again")
    assert queue.revive_all(reason="timeout", due=HOUR) == 2
    assert keys_of(queue.buried(10)) == ["b"]
    assert [one.key for one in queue.list(state="future").messages] == ["a", "c"]


def test_of_each_key_the_newest_burial_is_revived(queue: QueueFace, clock: ManualClock) -> None:
    for key, payload in (("a", "first"), ("b", "only"), ("a", "second")):
        bury(queue, key, payload)
        clock.advance(SECOND)
    assert queue.revive_all() == 2
    assert {one.payload for one in queue.list().messages} == {"only", "second"}
    assert [one.payload for one in queue.buried(10)] == ["first"]


def test_of_each_key_the_newest_burial_with_the_reason_is_revived(queue: QueueFace) -> None:
    for payload, reason in ((1, "x"), (2, "x"), (3, "y")):
        bury(queue, "a", payload, reason)
    assert queue.revive_all(reason="x") == 1
    assert snapshot(queue, "a").payload == 2
    assert [one.payload for one in queue.buried(10)] == [1, 3]


def test_a_live_key_is_left_alone_when_all_are_revived(queue: QueueFace) -> None:
    for key in "ab":
        bury(queue, key, "old")
    queue.offer("a", "new")
    assert queue.revive_all() == 1
    assert snapshot(queue, "a").payload == "new"
    assert keys_of(queue.buried(10)) == ["a"]


def test_more_burials_are_revived_than_one_transaction_takes(queue: QueueFace) -> None:
    queue.offer_batch([Message(f"k{number:04}", number) for number in range(1100)])
    for delivery in queue.try_poll_many(1100):
        assert delivery.bury("enough")
    queue.offer("k0700", "live")
    assert queue.revive_all() == 1099
    assert keys_of(queue.buried(10)) == ["k0700"]
    live = ["k0700"] + [f"k{number:04}" for number in range(1100) if number != 700]
    assert keys_of(queue.try_poll_many(1100)) == live


@pytest.mark.argument_checks
def test_a_reason_is_text(queue: QueueFace) -> None:
    reason: Any = 5
    for call in (lambda: queue.buried(1, reason=reason), lambda: queue.revive_all(reason)):
        with pytest.raises(TypeError, match=r"^reason must be a str"):
            call()


def test_purging_takes_what_was_buried_strictly_before(
    queue: QueueFace, clock: ManualClock
) -> None:
    for key in "abc":
        bury(queue, key)
        clock.advance(SECOND)
    assert queue.purge_buried(START) == 0
    assert queue.purge_buried(START + SECOND) == 1
    assert keys_of(queue.buried(10)) == ["b", "c"]
    assert queue.purge_buried(START + 2 * SECOND + MILLISECOND) == 2
    assert queue.buried(10) == []


def test_purging_leaves_live_messages(queue: QueueFace, clock: ManualClock) -> None:
    bury(queue, "a")
    queue.offer("a", 1)
    assert queue.purge_buried(START + DAY) == 1
    assert queue.contains("a")


def test_a_buried_message_can_be_read(queue: QueueFace) -> None:
    bury(queue, "a", "payload", "enough")
    found = snapshot(queue, "a")
    assert (found.state, found.payload, found.attempts) == (State.BURIED, "payload", 1)
    assert (found.due_at, found.leased_until, found.reason) == (START, None, "enough")


def test_the_most_recent_burial_of_a_key_is_read(queue: QueueFace) -> None:
    bury(queue, "a", "first")
    bury(queue, "a", "second")
    assert snapshot(queue, "a").payload == "second"


def test_a_live_message_is_read_before_a_buried_one(queue: QueueFace) -> None:
    bury(queue, "a", "old")
    queue.offer("a", "new", HOUR)
    found = snapshot(queue, "a")
    assert (found.state, found.payload) == (State.FUTURE, "new")

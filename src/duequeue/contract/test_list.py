"""Listing: the messages of a queue, page by page, in due order."""

from datetime import timedelta
from typing import Any

import pytest

from duequeue import ManualClock, Message, State
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import (
    DAY,
    DEFAULT_LEASE,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    PickyCodec,
    claim,
    snapshot,
)

DUE, LEASED, FUTURE = State.DUE, State.LEASED, State.FUTURE


def keys(queue: QueueFace, **filters: Any) -> list[str]:
    """The keys of all pages, of which none but the last may be short."""
    found: list[str] = []
    filters = {"limit": 2, **filters}
    while True:
        page = queue.list(**filters)
        found += [message.key for message in page.messages]
        if page.next is None:
            assert len(page.messages) <= filters["limit"]
            return found
        assert len(page.messages) == filters["limit"]
        filters["after"] = page.next


def offer(queue: QueueFace, **due: timedelta) -> None:
    """Offer each key for a time from the beginning of the test."""
    queue.offer_batch([Message(key, key, START + span) for key, span in due.items()])


def offer_in_every_state(queue: QueueFace) -> None:
    """Leave two messages in each state."""
    offer(queue, l1=-3 * HOUR, l2=-2 * HOUR)
    assert len(queue.try_poll_many(2)) == 2
    offer(queue, d1=-HOUR, f1=HOUR, d2=0 * HOUR, f2=2 * HOUR)


def test_an_empty_queue_has_one_empty_page(queue: QueueFace) -> None:
    page = queue.list()
    assert (page.messages, page.next) == ([], None)


def test_messages_come_in_due_order_and_then_in_insertion_order(queue: QueueFace) -> None:
    offer(queue, c=HOUR, a=HOUR, z=-HOUR, b=HOUR, y=DAY)
    assert keys(queue) == ["z", "c", "a", "b", "y"]
    assert keys(queue, limit=1) == ["z", "c", "a", "b", "y"]
    assert keys(queue, limit=5) == ["z", "c", "a", "b", "y"]


def test_a_page_that_is_just_full_has_no_next(queue: QueueFace) -> None:
    offer(queue, a=HOUR, b=HOUR)
    assert queue.list(limit=2).next is None
    assert queue.list(limit=1).next is not None


def test_a_listed_message_is_what_read_returns(queue: QueueFace) -> None:
    queue.offer("a", {"n": 1}, START - HOUR, headers={"trace": "1"})
    queue.offer("b", [2], START + HOUR)
    claim(queue)
    assert queue.list().messages == [snapshot(queue, "a"), snapshot(queue, "b")]
    listed = queue.list().messages[0]
    assert (listed.payload, listed.due_at, listed.state) == ({"n": 1}, START - HOUR, LEASED)
    assert (listed.attempts, listed.headers) == (1, {"trace": "1"})
    assert (listed.leased_until, listed.reason) == (START + DEFAULT_LEASE, None)


def test_a_hundred_messages_are_listed_if_no_number_is_given(queue: QueueFace) -> None:
    queue.offer_batch([Message(str(number), number) for number in range(101)])
    page = queue.list()
    assert len(page.messages) == 100
    assert [one.key for one in queue.list(after=page.next).messages] == ["100"]


def test_listing_changes_nothing(queue: QueueFace) -> None:
    offer_in_every_state(queue)
    before = queue.stats()
    keys(queue)
    assert queue.stats() == before


@pytest.mark.parametrize("given", [DUE, "due"])
def test_due_messages(queue: QueueFace, given: State | str) -> None:
    offer_in_every_state(queue)
    assert keys(queue, state=given, limit=1) == ["d1", "d2"]


@pytest.mark.parametrize("given", [LEASED, "leased"])
def test_leased_messages(queue: QueueFace, given: State | str) -> None:
    offer_in_every_state(queue)
    assert keys(queue, state=given, limit=1) == ["l1", "l2"]


@pytest.mark.parametrize("given", [FUTURE, "future"])
def test_future_messages(queue: QueueFace, given: State | str) -> None:
    offer_in_every_state(queue)
    assert keys(queue, state=given, limit=1) == ["f1", "f2"]


def test_the_state_is_that_of_now(queue: QueueFace, clock: ManualClock) -> None:
    offer_in_every_state(queue)
    clock.advance(HOUR)
    assert keys(queue, state=LEASED) == []
    assert keys(queue, state=DUE) == ["l1", "l2", "d1", "d2", "f1"]
    assert {one.state for one in queue.list(state=DUE).messages} == {DUE}
    assert keys(queue, state=FUTURE) == ["f2"]


def test_a_buried_message_is_not_listed(queue: QueueFace) -> None:
    offer(queue, a=-HOUR, b=HOUR)
    claim(queue).bury("enough")
    assert keys(queue) == ["b"]


def test_from_is_inclusive_and_to_is_exclusive(queue: QueueFace) -> None:
    offer(queue, a=HOUR - MILLISECOND, b=HOUR, c=2 * HOUR - MILLISECOND, d=2 * HOUR)
    first, last = START + HOUR, START + 2 * HOUR
    assert keys(queue, due_from=first) == ["b", "c", "d"]
    assert keys(queue, due_to=last) == ["a", "b", "c"]
    assert keys(queue, due_from=first, due_to=last, limit=1) == ["b", "c"]
    assert keys(queue, due_from=last, due_to=first) == []


def test_due_times_are_floored_to_the_millisecond(queue: QueueFace) -> None:
    offer(queue, a=HOUR, b=HOUR + MILLISECOND)
    part = timedelta(microseconds=999)
    assert keys(queue, due_from=START + HOUR + part) == ["a", "b"]
    assert keys(queue, due_to=START + HOUR + MILLISECOND + part) == ["a"]


def test_a_released_message_is_listed_where_it_stands_now(queue: QueueFace) -> None:
    offer(queue, a=-HOUR, b=MINUTE, c=HOUR)
    assert claim(queue).release(2 * MINUTE)
    assert keys(queue) == ["b", "a", "c"]
    assert keys(queue, state=FUTURE) == ["b", "a", "c"]
    assert keys(queue, due_from=START + 2 * MINUTE, due_to=START + HOUR) == ["a"]
    [listed] = queue.list(prefix="a").messages
    assert (listed.due_at, listed.deliver_at) == (START - HOUR, START + 2 * MINUTE)


PREFIXES = {
    "order": ["order-1", "order-2", "order_3", "order", "order\N{FIRE}"],
    "order-": ["order-1", "order-2"],
    "order_": ["order_3"],
    "%": ["%"],
    "_": ["_"],
    "Order": ["Order-9"],
    "cafe\u0301": ["cafe\u0301"],
    "café": ["café"],
    "\U0010ffff": ["\U0010ffff", "\U0010ffff\U0010ffff"],
    " ": [" order"],
    "nothing": [],
}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_is_exact_text(queue: QueueFace, prefix: str) -> None:
    names = [key for found in PREFIXES.values() for key in found]
    queue.offer_batch([Message(key, 1, START + HOUR) for key in dict.fromkeys(names)])
    assert sorted(keys(queue, prefix=prefix)) == sorted(PREFIXES[prefix])


def test_every_key_begins_with_an_empty_prefix(queue: QueueFace) -> None:
    offer(queue, b=HOUR, a=2 * HOUR)
    assert keys(queue, prefix="") == ["b", "a"]


def test_a_prefix_may_be_a_whole_key_of_any_length(queue: QueueFace) -> None:
    queue.offer("k" * 200, 1)
    queue.offer("k" * 199, 1)
    assert keys(queue, prefix="k" * 200) == ["k" * 200]
    assert keys(queue, prefix="k" * 199) == ["k" * 200, "k" * 199]


def test_messages_with_a_prefix_come_in_due_order_too(queue: QueueFace) -> None:
    offer(queue, a1=3 * HOUR, b1=HOUR, a2=-HOUR, a3=3 * HOUR, a0=2 * HOUR)
    assert keys(queue, prefix="a", limit=1) == ["a2", "a0", "a1", "a3"]


def test_filters_work_together(queue: QueueFace) -> None:
    offer_in_every_state(queue)
    offer(queue, d3=-MINUTE)
    assert keys(queue, state=DUE, prefix="d", due_from=START - MINUTE) == ["d3", "d2"]
    assert keys(queue, state=DUE, prefix="d", due_to=START) == ["d1", "d3"]
    assert keys(queue, state=FUTURE, due_to=START + 2 * HOUR) == ["f1"]
    assert keys(queue, state=LEASED, prefix="d") == []


def test_a_message_that_does_not_change_is_listed_once_whatever_others_do(
    queue: QueueFace,
) -> None:
    queue.offer_batch([Message(f"k{number}", 1, START + HOUR) for number in range(10)])
    page = queue.list(limit=4)
    found = [one.key for one in page.messages]
    queue.drop("k3")  # the one that the cursor points at
    queue.drop("k7")
    offer(queue, early=-HOUR, late=DAY)
    queue.offer("k0", "changed", START + 2 * HOUR)
    found += keys(queue, after=page.next)
    assert found == ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k8", "k9", "k0", "late"]


def test_a_cursor_serves_other_filters_and_limits(queue: QueueFace) -> None:
    offer(queue, a=HOUR, b=2 * HOUR, aa=3 * HOUR, c=4 * HOUR)
    cursor = queue.list(limit=1).next
    assert keys(queue, after=cursor, limit=3) == ["b", "aa", "c"]
    assert keys(queue, after=cursor, prefix="a") == ["aa"]
    assert keys(queue, after=cursor, due_from=START) == ["b", "aa", "c"]


def test_another_queue_object_goes_on_from_a_cursor(open_queue: OpenQueue) -> None:
    first = open_queue()
    offer(first, a=HOUR, b=HOUR)
    cursor = first.list(limit=1).next
    assert keys(open_queue(), after=cursor) == ["b"]


def test_a_cursor_of_another_queue_is_refused(open_queue: OpenQueue) -> None:
    ours, theirs = open_queue(), open_queue("invoices")
    typed = open_queue(codec=str)
    offer(ours, a=HOUR, b=HOUR)
    cursor = ours.list(limit=1).next
    for other in (theirs, typed):
        with pytest.raises(ValueError, match="after must be"):
            other.list(after=cursor)


def test_a_damaged_cursor_is_refused(queue: QueueFace) -> None:
    offer(queue, a=HOUR, b=HOUR)
    cursor = queue.list(limit=1).next
    assert cursor is not None
    damaged = ["", "x", "é", "\ud800", cursor[:-1], cursor + "A", cursor + "!", cursor + "="]
    damaged += [cursor[:at] + "-" + cursor[at + 1 :] for at in range(0, len(cursor), 5)]
    for text in damaged:
        with pytest.raises(ValueError, match="after must be"):
            queue.list(after=text)


def test_queues_of_one_store_do_not_see_each_other(open_queue: OpenQueue) -> None:
    ours, theirs = open_queue(), open_queue("invoices")
    offer(ours, a1=HOUR, a2=2 * HOUR)
    offer(theirs, a3=HOUR)
    assert keys(ours) == ["a1", "a2"]
    assert keys(ours, prefix="a") == ["a1", "a2"]
    assert keys(theirs, prefix="a") == ["a3"]


def test_a_payload_that_cannot_be_decoded_hides_no_other(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=PickyCodec())
    offer(queue, rotten=HOUR, good=2 * HOUR)
    rotten, good = queue.list().messages
    assert (rotten.key, rotten.payload, rotten.state) == ("rotten", None, FUTURE)
    assert rotten.reason == "undecodable payload: LookupError('rotten to the core')"
    assert (good.key, good.payload, good.reason) == ("good", "good", None)


BAD: list[tuple[str, object, type[Exception]]] = [
    ("state", "buried", ValueError),
    ("state", State.BURIED, ValueError),
    ("state", "DUE", ValueError),
    ("state", 1, TypeError),
    ("prefix", 1, TypeError),
    ("prefix", "k" * 201, ValueError),
    ("prefix", "a\0", ValueError),
    ("prefix", "\ud800", ValueError),
    ("due_from", START.replace(tzinfo=None), ValueError),
    ("due_to", START.replace(tzinfo=None), ValueError),
    ("due_from", SECOND, TypeError),
    ("after", 1, TypeError),
    ("limit", 0, ValueError),
    ("limit", -1, ValueError),
    ("limit", 1001, ValueError),
    ("limit", 1.0, TypeError),
    ("limit", True, TypeError),
]


@pytest.mark.argument_checks
@pytest.mark.parametrize(("argument", "value", "error"), BAD)
def test_bad_arguments_are_refused(
    queue: QueueFace, argument: str, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=f"^{argument} "):
        queue.list(**{argument: value})


def test_a_thousand_messages_fit_on_a_page(queue: QueueFace) -> None:
    queue.offer_batch([Message(f"k{number:04}", 1, START + HOUR) for number in range(1001)])
    page = queue.list(limit=1000)
    assert [one.key for one in page.messages] == [f"k{number:04}" for number in range(1000)]
    assert page.next is not None

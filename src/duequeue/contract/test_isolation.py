"""Many queues in one store: no queue, type or key is ever taken for another."""

from collections.abc import Callable

import pytest

from duequeue import BytesCodec, JsonCodec, Message, OfferOutcome, TextCodec
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import DAY, PickyCodec, claim, keys_of, snapshot

LOOKALIKES = [
    "key",
    "KEY",
    "Key",
    "kéy",
    "ke\N{COMBINING ACUTE ACCENT}y",
    "key ",
    "key  ",
    " key",
    "key\t",
    "key\n",
    "k%",
    "%",
    "k_y",
    "___",
    "key\\",
    "k\N{ZERO WIDTH SPACE}ey",
    "straße",
    "strasse",
    "STRASSE",
    "\N{LATIN SMALL LETTER DOTLESS I}",
    "i",
    "I",
    "İ",
    "1",
    "\N{FULLWIDTH DIGIT ONE}",
    "01",
    "1.0",
    "\N{LATIN SMALL LIGATURE FI}",
    "fi",
]

Neighbours = Callable[[OpenQueue], tuple[QueueFace, QueueFace]]


def two_names(open_queue: OpenQueue) -> tuple[QueueFace, QueueFace]:
    return open_queue("orders", codec=str), open_queue("invoices", codec=str)


def lookalike_names(open_queue: OpenQueue) -> tuple[QueueFace, QueueFace]:
    return open_queue("o_d%rs", codec=str), open_queue("O_d%rs ", codec=str)


def two_types(open_queue: OpenQueue) -> tuple[QueueFace, QueueFace]:
    return open_queue("orders", codec=str), open_queue("orders", codec=JsonCodec())


def two_type_names(open_queue: OpenQueue) -> tuple[QueueFace, QueueFace]:
    return open_queue(codec=PickyCodec("picky")), open_queue(codec=PickyCodec("PICKY"))


each_pair = pytest.mark.parametrize(
    "neighbours",
    [two_names, lookalike_names, two_types, two_type_names],
    ids=lambda pair: pair.__name__,
)


@each_pair
def test_the_same_key_lives_in_both(open_queue: OpenQueue, neighbours: Neighbours) -> None:
    ours, theirs = neighbours(open_queue)
    assert ours.offer("a", "ours", START) is OfferOutcome.CREATED
    assert theirs.offer("a", "theirs", START) is OfferOutcome.CREATED
    assert theirs.offer_batch([Message("a", "theirs", START)]) == [OfferOutcome.IGNORED]
    assert snapshot(ours, "a").payload == "ours"
    assert snapshot(theirs, "a").payload == "theirs"


@each_pair
def test_neither_sees_the_others_messages(open_queue: OpenQueue, neighbours: Neighbours) -> None:
    ours, theirs = neighbours(open_queue)
    ours.offer("a", "ours", START)
    assert theirs.try_poll() is None
    assert theirs.try_poll_many(10) == []
    assert theirs.read("a") is None
    assert not theirs.contains("a")
    assert theirs.stats().total == 0
    assert claim(ours).payload == "ours"


@each_pair
def test_neither_removes_the_others_messages(open_queue: OpenQueue, neighbours: Neighbours) -> None:
    ours, theirs = neighbours(open_queue)
    ours.offer_batch([Message("a", "ours", START), Message("b", "ours", START)])
    assert not theirs.drop("a")
    assert theirs.drop_all(theirs.name) == 0
    theirs.offer("a", "theirs", START)
    assert claim(theirs).ack()
    assert keys_of(ours.try_poll_many(10)) == ["a", "b"]


@each_pair
def test_neither_sees_what_the_other_buried(open_queue: OpenQueue, neighbours: Neighbours) -> None:
    ours, theirs = neighbours(open_queue)
    ours.offer("a", "ours", START)
    claim(ours).bury("enough")
    assert theirs.buried(10) == []
    assert theirs.stats().buried == 0
    assert theirs.read("a") is None
    assert not theirs.revive("a")
    assert theirs.purge_buried(START + DAY) == 0
    assert keys_of(ours.buried(10)) == ["a"]


def test_queues_of_one_name_and_type_are_the_same_queue(open_queue: OpenQueue) -> None:
    first, second = open_queue(codec=bytes), open_queue(codec=BytesCodec())
    first.offer("a", b"one")
    assert second.stats().due == 1
    assert claim(second).ack()
    assert first.stats().total == 0


def test_a_type_stands_for_its_codec(open_queue: OpenQueue) -> None:
    open_queue(codec=str).offer("a", "text")
    assert claim(open_queue(codec=TextCodec())).payload == "text"


def test_keys_that_look_alike_are_different_keys(queue: QueueFace) -> None:
    outcomes = [queue.offer(key, n, START) for n, key in enumerate(LOOKALIKES)]
    assert outcomes == [OfferOutcome.CREATED] * len(LOOKALIKES)
    assert [snapshot(queue, key).payload for key in LOOKALIKES] == list(range(len(LOOKALIKES)))
    assert keys_of(queue.try_poll_many(100)) == LOOKALIKES


def test_keys_that_look_alike_are_different_in_a_batch_too(queue: QueueFace) -> None:
    outcomes = queue.offer_batch([Message(key, n, START) for n, key in enumerate(LOOKALIKES)])
    assert outcomes == [OfferOutcome.CREATED] * len(LOOKALIKES)
    assert keys_of(queue.try_poll_many(100)) == LOOKALIKES


def test_dropping_a_key_spares_its_lookalikes(queue: QueueFace) -> None:
    queue.offer_batch([Message(key, 1, START) for key in LOOKALIKES])
    left = list(LOOKALIKES)
    for key in ("KEY", "key ", "%", "k_y", "kéy", "strasse"):
        assert queue.drop(key)
        left.remove(key)
        assert [one for one in LOOKALIKES if queue.contains(one)] == left


def test_reviving_a_key_spares_its_lookalikes(queue: QueueFace) -> None:
    queue.offer("key", 1)
    claim(queue).bury("enough")
    assert not any(queue.revive(key) for key in LOOKALIKES if key != "key")
    assert queue.revive("key")

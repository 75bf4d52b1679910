"""A message whose handler ends the process is buried, and no other one is."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from duequeue import ManualClock, Message
from duequeue.contract.phrases import CONSUMER_LEASE, SECOND, keys_of
from tests.race.conftest import OpenRival
from tests.race.crew import Hand
from tests.race.deadly_parts import DEADLY, handle_all, handle_all_async

GOOD = [f"order-{number:03}" for number in range(100)]
PLACE = 37  # of the deadly one, in due order

OnFace = Callable[[str, datetime, dict[str, Any]], None]


@pytest.fixture
def hire() -> Iterator[Callable[[], Hand]]:
    """A factory of other processes, because none of them lives long."""
    with ExitStack() as hired:

        def one() -> Hand:
            hand = Hand()
            hired.callback(hand.end)
            return hand

        yield one


def words_of(hand: Hand) -> list[Any]:
    """Return what a process tells until it has nothing left to do, or dies."""
    words = []
    while True:
        try:
            words.append(hand.heard())
        except (EOFError, AssertionError):  # it is dead, or it has come to its end
            return words


@pytest.mark.parametrize(
    ("on_face", "options", "crashes"),
    [
        (handle_all, {"max_attempts": 5}, 5),
        (handle_all_async, {"max_attempts": 3}, 3),
        (handle_all, {"max_attempts": 2, "batch": 7}, 2),
        (handle_all, {"max_attempts": 1, "concurrency": 1}, 1),
    ],
    ids=["5 attempts on threads", "3 attempts on tasks", "2 attempts", "1 attempt"],
)
def test_only_the_deadly_message_is_buried(  # noqa: PLR0917 - fixtures and parameters
    open_rival: OpenRival,
    store_url: str,
    hire: Callable[[], Hand],
    clock: ManualClock,
    on_face: OnFace,
    options: dict[str, Any],
    crashes: int,
) -> None:
    queue = open_rival()
    queue.offer_batch([Message(key, 1) for key in [*GOOD[:PLACE], DEADLY, *GOOD[PLACE:]]])
    handled: list[str] = []
    rounds = 0
    while queue.stats().total:
        hand = hire()
        hand.start(partial(on_face, store_url, clock.now(), options))
        handled += words_of(hand)
        clock.advance(CONSUMER_LEASE + SECOND)
        rounds += 1
        assert rounds <= crashes + 1
    (buried,) = queue.buried(10)
    assert (buried.key, buried.attempts) == (DEADLY, crashes)
    assert "its process died while it was handled" in buried.reason
    assert handled.count(DEADLY) == crashes
    assert set(handled) == {DEADLY, *GOOD}


def test_a_message_that_was_fetched_for_its_last_attempt_is_spared(
    open_rival: OpenRival, store_url: str, hire: Callable[[], Hand], clock: ManualClock
) -> None:
    queue = open_rival()
    queue.offer("unlucky", 1)
    for _ in range(2):
        (delivery,) = queue.try_poll_many(1)
        assert delivery.release()
    queue.offer(DEADLY, 1, clock.now() - SECOND)
    options = {"max_attempts": 3, "concurrency": 1}
    handled: list[list[str]] = []
    while queue.stats().total:
        hand = hire()
        hand.start(partial(handle_all, store_url, clock.now(), options))
        handled.append(words_of(hand))
        clock.advance(CONSUMER_LEASE + SECOND)
    assert handled[0] == [DEADLY]
    assert any("unlucky" in words for words in handled[1:])
    assert keys_of(queue.buried(10)) == [DEADLY]

"""Offers that cross together: what goes wrong for one of them is nobody else's error."""

from collections.abc import Iterator
from typing import Any

import pytest

from duequeue import OfferOutcome, Queue, RetryPolicy, StoreError
from duequeue.actions import Action, Flow, Listen, Run
from duequeue.flows.crossing import cross
from duequeue.store import Record


@pytest.fixture
def queue() -> Iterator[Queue[Any]]:
    with Queue.open("memory:", "orders", retry=RetryPolicy.never()) as queue:
        yield queue


class Caller:
    """One of several who offer at once, run step by step."""

    def __init__(self, queue: Queue[Any], key: str) -> None:
        self._flow: Flow[OfferOutcome] = cross(queue._context, Record(key, b"1", 0))  # noqa: SLF001
        self._perform = queue._perform  # noqa: SLF001
        self._action: Action = next(self._flow)
        self.outcome: OfferOutcome | None = None

    @property
    def waits(self) -> bool:
        return isinstance(self._action, Listen)

    def go_on(self, error: BaseException | None = None) -> None:
        """Carry the action out, or have it fail."""
        try:
            if error is not None:
                self._action = self._flow.throw(error)
                return
            reply = self._perform(self._action) if isinstance(self._action, Run) else None
            self._action = self._flow.send(reply)
        except StopIteration as done:
            self.outcome = done.value

    def finish(self) -> OfferOutcome:
        while self.outcome is None:
            self.go_on()
        return self.outcome


def test_a_crossing_of_several_that_fails_is_made_again_by_each_alone(queue: Queue[Any]) -> None:
    first = Caller(queue, "a")
    leader, follower = Caller(queue, "b"), Caller(queue, "c")
    assert leader.waits
    assert follower.waits
    first.finish()
    leader.go_on()  # takes the follower along
    assert not leader.waits
    leader.go_on(StoreError("no"))
    assert [leader.finish(), follower.finish()] == [OfferOutcome.CREATED] * 2


def test_a_caller_gets_only_its_own_error(queue: Queue[Any]) -> None:
    first, second = Caller(queue, "a"), Caller(queue, "b")
    with pytest.raises(StoreError, match="mine"):
        first.go_on(StoreError("mine"))
    assert second.finish() is OfferOutcome.CREATED


@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit])
def test_a_leader_that_is_interrupted_strands_nobody(
    queue: Queue[Any], error: type[BaseException]
) -> None:
    first = Caller(queue, "a")
    leader, follower = Caller(queue, "b"), Caller(queue, "c")
    first.finish()
    leader.go_on()
    with pytest.raises(error):
        leader.go_on(error())
    assert follower.finish() is OfferOutcome.CREATED

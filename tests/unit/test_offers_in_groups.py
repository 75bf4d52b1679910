"""Offers that share a commit: an error of one of them is not an error of the others."""

from asyncio import CancelledError
from collections.abc import Iterator
from typing import NoReturn

import pytest

from duequeue import OfferOutcome, RetryPolicy, StoreError
from duequeue.contract.parts import open_parts
from duequeue.drive.actions import Action, Apart, Flow, Listen, performer
from duequeue.drive.steps import drive
from duequeue.flows import offering
from duequeue.parts import Parts


@pytest.fixture
def parts() -> Iterator[Parts]:
    found = open_parts("memory:", retry=RetryPolicy.never())
    with found.queue:
        yield found


class Caller:
    """One of several who offer at once, run step by step."""

    def __init__(self, parts: Parts, key: str) -> None:
        self._flow: Flow[OfferOutcome] = offering.offer(
            parts.context, key, 1, None, replace=True, headers=None
        )
        self._perform = performer(parts.session)
        self.action: Action = next(self._flow)
        self.outcome: OfferOutcome | None = None

    @property
    def waits(self) -> bool:
        return isinstance(self.action, Listen)

    def go_on(self) -> None:
        """Carry the action out."""
        self.go_on_with(None if self.waits else self._perform(self.action))

    def go_on_with(self, reply: object) -> None:
        """Take the action for carried out."""
        try:
            self.action = self._flow.send(reply)
        except StopIteration as done:
            self.outcome = done.value

    def fail(self, error: BaseException) -> None:
        """Have the action fail."""
        self.action = self._flow.throw(error)

    def finish(self) -> OfferOutcome:
        while self.outcome is None:
            self.go_on()
        return self.outcome


def refuse(*_: object) -> NoReturn:
    raise StoreError("no")


def test_after_a_shared_commit_failed_each_member_offers_alone(parts: Parts) -> None:
    first = Caller(parts, "a")
    leader, follower = Caller(parts, "b"), Caller(parts, "c")
    assert leader.waits
    assert follower.waits
    first.finish()
    leader.go_on()  # starts a group with the follower
    assert isinstance(leader.action, Apart)
    drive(leader.action.flow, refuse)
    leader.go_on_with(None)
    assert [leader.finish(), follower.finish()] == [OfferOutcome.CREATED] * 2


def test_a_caller_gets_only_its_own_error(parts: Parts) -> None:
    first, second = Caller(parts, "a"), Caller(parts, "b")
    with pytest.raises(StoreError, match="mine"):
        first.fail(StoreError("mine"))
    assert second.finish() is OfferOutcome.CREATED


def test_a_shared_commit_goes_on_without_its_leader(parts: Parts) -> None:
    first = Caller(parts, "a")
    leader, follower = Caller(parts, "b"), Caller(parts, "c")
    first.finish()
    leader.go_on()
    assert isinstance(leader.action, Apart)
    with pytest.raises(CancelledError):
        leader.fail(CancelledError())
    assert follower.waits
    drive(leader.action.flow, performer(parts.session))
    follower.go_on()
    assert follower.outcome is OfferOutcome.CREATED
    assert parts.queue.contains("b")


@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit])
def test_an_interrupted_commit_leaves_no_member_waiting(
    parts: Parts, error: type[BaseException]
) -> None:
    first = Caller(parts, "a")
    leader, follower = Caller(parts, "b"), Caller(parts, "c")
    first.finish()
    leader.go_on()
    assert isinstance(leader.action, Apart)
    next(leader.action.flow)
    with pytest.raises(error):
        leader.action.flow.throw(error())
    assert follower.finish() is OfferOutcome.CREATED

"""The checker on logs that were made up: what it must accept, and what it must name."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fire.checker import check
from tests.fire.entries import Answered, Call, Delivered, Entry, Invoked, Noted
from tests.fire.violations import Broken

LEASE = 1000


class Paper:
    """A log that is written by hand. Every call takes one instant, if it ends."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "p1.jsonl"
        self._lines: list[Entry] = []
        self._number = 0
        self.at = 0

    def call(self, call: Call, answer: Any, *, lasts: int = 1) -> None:
        self._begin(call)
        self._lines.append(Answered(self._number, self.at + lasts, self.at, answer))
        self.at += 10

    def killed(self, call: Call) -> None:
        """A call without an answer."""
        self._begin(call)
        self.at += 10

    def given_up(self, call: Call, clock: int) -> None:
        """A call that its caller gave up, on a clock of its own."""
        self._number += 1
        self._lines.append(Invoked(self._number, "b", "orders", self.at, clock, call))
        self._lines.append(Answered(self._number, self.at + 1, clock, error="TimeoutError: "))
        self.at += 10

    def offer(self, answer: str, payload: str = "a", due: int = 0) -> None:
        self.call(Call("offer", "k", payload, due), answer)

    def poll(self, *, attempt: int = 1, at: int = 0, name: str = "d", payload: str = "a") -> None:
        delivered = Delivered(name, "k", payload, 0, attempt, at, at + LEASE)
        self.call(Call("poll"), [msgspec.to_builtins(delivered)])

    def ack(self, won: bool, name: str = "d") -> None:
        self.call(Call("ack", delivery=name), won)

    def nothing_left(self) -> None:
        self.call(Call("stats"), {"total": 0, "waiting": 0})

    def fault(self, name: str, *, lasts: int, **facts: bool) -> None:
        self._lines.append(
            Noted("fault begins", self.at, "", {"fault_number": 0, "fault": name, **facts})
        )
        self._lines.append(Noted("fault ends", self.at + lasts, "", {"fault_number": 0}))

    def names(self) -> set[Broken]:
        lines = [msgspec.json.encode(line) for line in self._lines]
        self._path.write_bytes(b"\n".join([*lines, b'{"type":"call","numb']))
        return check(self._path.parent).names

    def _begin(self, call: Call) -> None:
        self._number += 1
        self._lines.append(Invoked(self._number, "a", "orders", self.at, self.at, call))


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    return Paper(tmp_path)


def test_everything_in_order(paper: Paper) -> None:
    paper.offer("created")
    paper.poll()
    paper.ack(True)
    paper.ack(False)
    paper.nothing_left()
    assert paper.names() == set()


def test_a_killed_offer_may_be_there(paper: Paper) -> None:
    paper.killed(Call("offer", "k", "a", 0))
    paper.poll()
    paper.ack(True)
    paper.nothing_left()
    assert paper.names() == set()


def test_a_killed_offer_may_be_missing(paper: Paper) -> None:
    paper.killed(Call("offer", "k", "a", 0))
    paper.nothing_left()
    assert paper.names() == set()


def test_a_killed_batch_may_have_changed_nothing_at_first(paper: Paper) -> None:
    paper.offer("created")
    items = [Call("offer", "k", "b", 0, replace=False), Call("offer", "k", "c", 0)]
    paper.killed(Call("offer_batch", items=items))
    paper.poll(payload="c")
    paper.ack(True)
    paper.nothing_left()
    assert paper.names() == set()


def test_a_killed_offer_may_come_late_but_not_twice(paper: Paper) -> None:
    paper.killed(Call("offer", "k", "b", 0))
    paper.offer("created")
    paper.poll()
    paper.ack(True)
    paper.poll(name="e", payload="b")
    paper.ack(True, "e")
    paper.nothing_left()
    assert paper.names() == set()
    paper.poll(name="f", payload="b")
    assert paper.names() == {Broken.CAME_BACK}


def test_a_killed_poll_may_have_counted(paper: Paper) -> None:
    paper.offer("created")
    paper.killed(Call("poll"))
    paper.poll(attempt=2, at=LEASE)
    assert paper.names() == set()


def test_a_missing_attempt(paper: Paper) -> None:
    paper.offer("created")
    paper.poll(attempt=2, at=LEASE)
    assert paper.names() == {Broken.ATTEMPT}


def test_a_lost_offer(paper: Paper) -> None:
    paper.offer("created")
    paper.nothing_left()
    assert paper.names() == {Broken.LOST}


def test_two_acks(paper: Paper) -> None:
    paper.offer("created")
    paper.poll()
    paper.ack(True)
    paper.ack(True)
    assert paper.names() == {Broken.TWO_ACKS}


def test_a_live_lease_is_taken(paper: Paper) -> None:
    paper.offer("created")
    paper.poll()
    paper.poll(name="e", attempt=2, at=LEASE - 1)
    assert paper.names() == {Broken.OVERLAP}


@pytest.mark.parametrize("lost", [True, False])
def test_an_offer_may_come_back_only_if_its_reply_was_lost(paper: Paper, lost: bool) -> None:
    paper.fault("cut", lasts=5, loses_replies=lost)
    paper.call(Call("offer", "k", "a", 0), "created", lasts=45)
    paper.poll()
    paper.ack(True)
    paper.poll(name="e")
    paper.ack(True, "e")
    paper.nothing_left()
    assert paper.names() == (set() if lost else {Broken.CAME_BACK})


@pytest.mark.parametrize("undoes", [True, False])
def test_only_a_crash_may_undo_a_lease(paper: Paper, undoes: bool) -> None:
    paper.offer("created")
    paper.poll()
    paper.fault("crash", lasts=5, undoes_leases=undoes)
    paper.at += 10
    paper.poll(name="e", at=1)
    paper.ack(False)
    paper.ack(True, "e")
    paper.nothing_left()
    assert bool(paper.names()) is not undoes


@pytest.mark.parametrize(("clock", "broken"), [(LEASE, set()), (LEASE - 1, {Broken.OVERLAP})])
def test_a_poll_that_was_given_up_may_end_a_lease_by_its_own_clock(
    paper: Paper, clock: int, broken: set[Broken]
) -> None:
    """It gives the message back, which a clock that is behind then finds without a lease."""
    paper.offer("created")
    paper.poll()
    paper.given_up(Call("poll"), clock)
    paper.poll(attempt=2, at=LEASE - 100, name="e")
    paper.ack(True, "e")
    paper.nothing_left()
    assert paper.names() == broken


@pytest.mark.parametrize(("late", "broken"), [(True, set()), (False, {Broken.REFUSED})])
def test_a_poll_whose_reply_comes_late_may_have_given_a_message_back(
    paper: Paper, late: bool, broken: set[Broken]
) -> None:
    """It took the lease of somebody whose ack comes after that, and then kept nothing."""
    paper.offer("created")
    paper.poll()
    paper.at = LEASE
    paper.fault("black hole", lasts=2 * LEASE, loses_replies=late)
    paper.call(Call("poll"), [], lasts=2 * LEASE)
    paper.ack(False)
    paper.at = 4 * LEASE
    paper.poll(attempt=2, at=4 * LEASE, name="e")
    paper.ack(True, "e")
    paper.nothing_left()
    assert paper.names() == broken

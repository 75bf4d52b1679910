"""How long a poll sleeps while another poll looks for it."""

import asyncio

import pytest

from duequeue.drive.actions import Action, Flow, Listen
from duequeue.server import lookouts
from duequeue.server.lookouts import Lookouts, PollFlow
from duequeue.wakeups.bell import Bell
from duequeue.wakeups.next_look import NEVER

LISTEN = Listen(Bell(), 0, looks_at=5, seconds=1.0)


class Waits:
    """Notes what a poll waits for."""

    def __init__(self) -> None:
        self.seen: list[Action] = []

    async def perform(self, action: Action) -> object:
        self.seen.append(action)
        return None


def poll() -> Flow[None]:
    yield LISTEN


def test_the_time_of_a_poll_begins_when_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A settlement in the same request may take long before that."""
    now = [100.0]
    monkeypatch.setattr(lookouts, "monotonic", lambda: now[0])
    waits, others = Waits(), Lookouts()
    flow = PollFlow(waits.perform, others, seconds=20.0)
    now[0] += 8.0
    with others.waking_at(LISTEN.looks_at):
        asyncio.run(flow.run(poll()))
    assert waits.seen == [LISTEN._replace(looks_at=NEVER, seconds=20.0)]


def test_a_poll_for_which_nobody_looks_wakes_up_itself() -> None:
    waits = Waits()
    asyncio.run(PollFlow(waits.perform, Lookouts(), seconds=20.0).run(poll()))
    assert waits.seen == [LISTEN]

"""Flows whose waits can be ended from outside."""

import asyncio
from collections.abc import Callable

import pytest

from duequeue.drive.actions import Action, Flow, Pause, Run
from duequeue.drive.steps import at_once
from duequeue.drive.stoppable import StoppableFlow, Stopped

A_WHILE = Pause(3600.0)
SOMETHING = Run(at_once(lambda: "done"), 1.0, consumes=False)


def steps(*actions: Action) -> Flow[object]:
    found: object = None
    for action in actions:
        found = yield action
    return found


def run(
    flow: Flow[object], end: Callable[[StoppableFlow, "asyncio.Task[object]"], object]
) -> object:
    """Run a flow, whose first action the test ends."""

    async def scenario() -> object:
        begun, goes_on = asyncio.Event(), asyncio.Event()

        async def perform(_: Action) -> object:
            begun.set()
            await goes_on.wait()
            return "done"

        stoppable = StoppableFlow(perform)
        task = asyncio.create_task(stoppable.run(flow))
        await begun.wait()
        end(stoppable, task)
        goes_on.set()
        return await asyncio.wait_for(task, 30)

    return asyncio.run(scenario())


def test_a_stop_ends_a_wait() -> None:
    with pytest.raises(Stopped):
        run(steps(A_WHILE), lambda flow, _: flow.stop())


def test_a_stop_lets_an_operation_end_and_begins_no_wait_after_it() -> None:
    assert run(steps(SOMETHING), lambda flow, _: flow.stop()) == "done"
    with pytest.raises(Stopped):
        run(steps(SOMETHING, A_WHILE), lambda flow, _: flow.stop())


@pytest.mark.parametrize("action", [A_WHILE, SOMETHING], ids=["wait", "operation"])
def test_a_cancellation_is_no_stop(action: Action) -> None:
    with pytest.raises(asyncio.CancelledError):
        run(steps(action), lambda _, task: task.cancel())

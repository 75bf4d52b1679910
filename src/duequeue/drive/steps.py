"""Run a generator of commands, blocking or awaiting.

Every operation of a store and every behaviour of a queue is written once, as a generator that
yields what it wants done and is sent the answer. These two functions are all that differs
between the blocking and the awaiting world.
"""

from collections.abc import Awaitable, Callable, Generator
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Command = TypeVar("Command")


def drive(steps: Generator[Command, Any, T], perform: Callable[[Command], object]) -> T:
    """Run `steps` to the end; what `perform` raises is raised at the `yield`."""
    try:
        command = next(steps)
        while True:
            try:
                reply = perform(command)
            except BaseException as error:  # noqa: BLE001 - handed to the steps, which re-raise it
                command = steps.throw(error)
            else:
                command = steps.send(reply)
    except StopIteration as done:
        result: T = done.value
        return result


async def drive_async(
    steps: Generator[Command, Any, T], perform: Callable[[Command], Awaitable[object]]
) -> T:
    """Run `steps` to the end, awaiting each answer."""
    try:
        command = next(steps)
        while True:
            try:
                reply = await perform(command)
            except BaseException as error:  # noqa: BLE001 - handed to the steps, which re-raise it
                command = steps.throw(error)
            else:
                command = steps.send(reply)
    except StopIteration as done:
        result: T = done.value
        return result


def at_once(operation: Callable[P, T]) -> Callable[P, Generator[Any, Any, T]]:
    """Turn a plain function into steps that ask for nothing."""

    @wraps(operation)
    def steps(*args: P.args, **kwargs: P.kwargs) -> Generator[Any, Any, T]:
        yield from ()
        return operation(*args, **kwargs)

    return steps

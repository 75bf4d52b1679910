"""One generator, two drivers: blocking and awaiting."""

import asyncio
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import pytest

from duequeue.drive.steps import at_once, drive, drive_async

Steps: TypeAlias = Generator[Any, Any, Any]
Drive: TypeAlias = Callable[[Steps, Callable[[Any], object]], Any]


def drive_awaiting(steps: Steps, perform: Callable[[Any], object]) -> Any:
    async def perform_async(command: object) -> object:
        await asyncio.sleep(0)
        return perform(command)

    return asyncio.run(drive_async(steps, perform_async))


both = pytest.mark.parametrize("run", [drive, drive_awaiting])


@both
def test_replies_are_sent_back(run: Drive) -> None:
    def steps() -> Steps:
        first = yield "a"
        second = yield "b"
        return first + second

    assert run(steps(), str.upper) == "AB"


@both
def test_steps_may_ask_for_nothing(run: Drive) -> None:
    assert run(at_once(lambda left, right: left + right)(1, right=2), _unused) == 3


@both
def test_an_error_is_raised_at_the_yield(run: Drive) -> None:
    def steps() -> Steps:
        try:
            yield "fail"
        except LookupError as error:
            reply = yield "recover"
            return f"{error.args[0]}, {reply}"

    def perform(command: str) -> str:
        if command == "fail":
            raise LookupError("failed")
        return command

    assert run(steps(), perform) == "failed, recover"


@both
@pytest.mark.parametrize("kind", [LookupError, KeyboardInterrupt, asyncio.CancelledError])
def test_an_error_nobody_catches_comes_out(run: Drive, kind: type[BaseException]) -> None:
    cleaned_up = []

    def steps() -> Steps:
        try:
            yield "fail"
        finally:
            cleaned_up.append(True)

    def perform(_: str) -> None:
        raise kind("out")

    with pytest.raises(kind):
        run(steps(), perform)
    assert cleaned_up == [True]


@both
def test_steps_may_contain_steps(run: Drive) -> None:
    def inner(number: int) -> Steps:
        return (yield number) * 10

    def outer() -> Steps:
        first = yield from inner(1)
        second = yield from inner(2)
        return [first, second]

    assert run(outer(), lambda number: number + 1) == [20, 30]


def test_at_once_does_nothing_before_it_is_driven() -> None:
    done: list[int] = []
    steps = at_once(done.append)(1)
    assert done == []
    drive(steps, _unused)
    assert done == [1]


def _unused(command: object) -> object:
    raise AssertionError(f"nobody asked for {command!r}")

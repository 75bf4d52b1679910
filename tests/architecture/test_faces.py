"""The blocking and the awaiting face: the same names, parameters and docstrings."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import duequeue
from duequeue.timers import AsyncDelayQueue, DelayQueue
from tests.architecture.test_public_names import members_of

FACES = [
    pytest.param(getattr(duequeue, name), getattr(duequeue, f"Async{name}"), id=name)
    for name in duequeue.__all__
    if f"Async{name}" in duequeue.__all__
] + [pytest.param(DelayQueue, AsyncDelayQueue, id="DelayQueue")]

# What these return is awaited instead, or does the awaiting.
NOT_AWAITED = {"open", "within", "consume", "handler"}

# What differs between threads and tasks is described apart.
DESCRIBED_APART = {"close", "consume", "open", "run", "stop"}


def parameters_of(method: Callable[..., Any]) -> list[tuple[str, object, object]]:
    """The names, kinds and defaults of a method's parameters."""
    return [
        (parameter.name, parameter.kind, parameter.default)
        for parameter in inspect.signature(method).parameters.values()
    ]


def test_both_faces_are_exported() -> None:
    assert {"Queue", "Delivery"} <= {face.id for face in FACES}


@pytest.mark.parametrize(("blocking", "awaiting"), FACES)
def test_faces_have_the_same_names(blocking: type, awaiting: type) -> None:
    assert members_of(blocking).keys() == members_of(awaiting).keys()
    assert hasattr(blocking, "__enter__") == hasattr(awaiting, "__aenter__")
    assert hasattr(blocking, "__exit__") == hasattr(awaiting, "__aexit__")


@pytest.mark.parametrize(("blocking", "awaiting"), FACES)
def test_no_face_can_be_entered_like_the_other(blocking: Any, awaiting: Any) -> None:
    if hasattr(awaiting, "__enter__"):
        with pytest.raises(TypeError, match="`async with`"):
            awaiting.__enter__(object())
    if hasattr(blocking, "__aenter__"):
        with pytest.raises(TypeError, match="`with`"):
            blocking.__aenter__(object()).send(None)


@pytest.mark.parametrize(("blocking", "awaiting"), FACES)
def test_faces_have_the_same_parameters(blocking: type, awaiting: type) -> None:
    for name, member in members_of(blocking).items():
        other = members_of(awaiting)[name]
        assert isinstance(member, property) == isinstance(other, property), name
        if not isinstance(member, property):
            here, there = getattr(blocking, name), getattr(awaiting, name)
            assert parameters_of(here) == parameters_of(there), name


@pytest.mark.parametrize(("blocking", "awaiting"), FACES)
def test_faces_have_the_same_docstrings(blocking: type, awaiting: type) -> None:
    described = {name: inspect.getdoc(member) for name, member in members_of(blocking).items()}
    awaited = {name: inspect.getdoc(member) for name, member in members_of(awaiting).items()}
    differ = {name for name in described if described[name] != awaited[name]}
    assert differ <= DESCRIBED_APART


@pytest.mark.parametrize(("blocking", "awaiting"), FACES)
def test_one_face_blocks_and_the_other_awaits(blocking: type, awaiting: type) -> None:
    ours, theirs = members_of(blocking), members_of(awaiting)
    for name, member in theirs.items():
        if isinstance(member, property) or ours[name] is member:
            continue  # what both of them inherit does no I/O
        assert not inspect.iscoroutinefunction(getattr(blocking, name)), name
        awaited = inspect.iscoroutinefunction(getattr(awaiting, name))
        assert awaited is (name not in NOT_AWAITED), name

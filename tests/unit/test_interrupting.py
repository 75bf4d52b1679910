"""Ctrl-C waits for the end of a step, but not twice."""

import signal

import pytest

from duequeue.cli.interrupting import Interrupts


def press_ctrl_c(times: int, done: list[str]) -> None:
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)
    done.append("step")


def test_outside_of_a_step_it_is_answered_at_once() -> None:
    interrupts = Interrupts()
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt), interrupts.deferred():
        press_ctrl_c(1, done)
    assert (done, interrupts.broke_a_step) == ([], False)


def test_a_step_comes_to_its_end() -> None:
    interrupts = Interrupts()
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt), interrupts.deferred(), interrupts.step():
        press_ctrl_c(1, done)
    assert (done, interrupts.broke_a_step) == (["step"], False)


def test_a_second_one_breaks_the_step() -> None:
    interrupts = Interrupts()
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt), interrupts.deferred(), interrupts.step():
        press_ctrl_c(2, done)
    assert (done, interrupts.broke_a_step) == ([], True)


def test_afterwards_everything_is_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts().deferred():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before

"""Processes that tests send calls to, interrupt, and kill."""

import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.race.together import PATIENCE
from tests.race.worker import GO, READY, Outcome, Told

ROOT = Path(__file__).parents[2]


class Hand:
    """One other process, which makes one call at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.race.worker"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._commands, self._replies = self._process.stdin, self._process.stdout

    def start(self, call: Callable[[], Any]) -> None:
        """Have a call made."""
        self.prepare(call)
        self.await_ready()
        self.go()

    def prepare(self, call: Callable[[], Any]) -> None:
        """Send a call that is not to be made yet."""
        self._write(pickle.dumps(call))

    def await_ready(self) -> None:
        """Wait until the call is understood."""
        assert self._read() == READY

    def go(self) -> None:
        """Have the prepared call made now."""
        self._write(GO)

    def heard(self) -> Any:
        """Return the next thing that the running call tells."""
        told = self._read()
        assert isinstance(told, Told), told
        return told.value

    def outcome(self) -> Outcome:
        """Wait until the call ends."""
        outcome = self._read()
        assert isinstance(outcome, Outcome), outcome
        return outcome

    def interrupt(self) -> None:
        """Do what Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Do what the kernel does when memory is short."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def last_words(self) -> list[Any]:
        """Kill the process, and return what it had told by then."""
        self._process.kill()
        self._process.wait(PATIENCE)
        words = []
        with suppress(EOFError, pickle.UnpicklingError):  # the last one may be cut short
            while True:
                words.append(self.heard())
        return words

    def end(self) -> None:
        """Dismiss the process, and wait until it is gone."""
        self._commands.close()
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()  # whatever keeps it, it must not disturb the next test
            self._replies.close()

    def _write(self, data: bytes) -> None:
        self._commands.write(data)
        self._commands.flush()

    def _read(self) -> Any:
        return pickle.load(self._replies)  # noqa: S301 - it comes from our own process


class Crew:
    """Hands that are hired when needed and kept until the end."""

    def __init__(self) -> None:
        self._hands: list[Hand] = []

    def together(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """Make all the calls at once, each in a process of its own; return their results."""
        while len(self._hands) < len(calls):
            self._hands.append(Hand())
        hands = self._hands[: len(calls)]
        for hand, call in zip(hands, calls, strict=True):
            hand.prepare(call)
        for hand in hands:
            hand.await_ready()
        for hand in hands:
            hand.go()
        outcomes = [hand.outcome() for hand in hands]
        errors = [outcome.error for outcome in outcomes if outcome.error]
        assert not errors, "\n\n".join(errors)
        return [outcome.value for outcome in outcomes]

    def end(self) -> None:
        for hand in self._hands:
            hand.end()

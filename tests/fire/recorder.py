"""The append-only log of one process.

Each line is handed to the kernel by one write before the next thing happens. So a killed process
leaves every call that it began, and a call without an answer may or may not have taken effect.
"""

import os
from itertools import count
from pathlib import Path
from time import monotonic_ns
from typing import Any

import msgspec

from tests.fire.entries import Answered, Call, Entry, Invoked, Noted


def instant() -> int:
    """Return the present instant, in microseconds, common to all processes of this machine."""
    return monotonic_ns() // 1000


class Recorder:
    """Writes the log of one process, from any of its threads."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._numbers = count(1)
        self._encoder = msgspec.json.Encoder()

    def invoked(self, actor: str, queue: str, clock: int, call: Call) -> int:
        """Write that a call begins, and return its number."""
        number = next(self._numbers)
        self._write(Invoked(number, actor, queue, instant(), clock, call))
        return number

    def answered(self, number: int, clock: int, answer: Any) -> None:
        """Write what a call returned."""
        self._write(Answered(number, instant(), clock, answer))

    def failed(self, number: int, clock: int, error: BaseException) -> None:
        """Write what a call raised."""
        words = f"{type(error).__name__}: {error}"
        self._write(Answered(number, instant(), clock, error=words))

    def noted(self, event: str, actor: str = "", at: int | None = None, **facts: Any) -> None:
        """Write down something else."""
        self._write(Noted(event, instant() if at is None else at, actor, facts))

    def close(self) -> None:
        os.close(self._file)

    def _write(self, entry: Entry) -> None:
        os.write(self._file, self._encoder.encode(entry) + b"\n")

"""Ctrl-C that waits for the end of a step, so that it is clear what was done."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """The interrupts of a command that works in steps; a second one does not wait."""

    def __init__(self) -> None:
        self._in_step = False
        self._pending = False

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Answer signals here, until the end of the block."""
        before = signal.signal(signal.SIGINT, self._answer)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def step(self) -> Iterator[None]:
        """Let an interrupt wait until the end of the block."""
        self._in_step = True
        yield
        self._in_step = False
        if self._pending:
            raise KeyboardInterrupt

    @property
    def broke_a_step(self) -> bool:
        """Whether a step was interrupted before its end."""
        return self._in_step

    def _answer(self, _number: int, _frame: FrameType | None) -> None:
        if self._pending or not self._in_step:
            raise KeyboardInterrupt
        self._pending = True

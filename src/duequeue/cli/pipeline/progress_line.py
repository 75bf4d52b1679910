"""The line that shows how far a job is."""

from collections.abc import Callable
from time import monotonic

from duequeue.cli.terminal import Terminal

PLAIN_INTERVAL_SECONDS = 10.0


class Interrupted(Exception):
    """Raised between two steps of a job that was asked to stop."""


class ProgressLine:
    """Updates the line at once on a terminal, and prints one now and then elsewhere."""

    def __init__(self, terminal: Terminal, clock: Callable[[], float] = monotonic) -> None:
        self._terminal = terminal
        self._clock = clock
        self._began_at = self._shown_at = clock()
        self._stopping = False

    def stop(self) -> None:
        """End the job before its next step."""
        self._stopping = True

    def step(self, what: str) -> None:
        """Show the step that begins."""
        if self._stopping:
            raise Interrupted
        self._began_at = self._clock()
        if self._terminal.live:
            self._terminal.show(what)
        else:
            self._print(what)

    def at(self, what: str, done: int, parts: int) -> None:
        """Show how far the step is."""
        now = self._clock()
        self._update(f"{what}: {done:,} of {parts:,} parts after {now - self._began_at:.0f} s", now)

    def still(self, line: str) -> None:
        """Show how a step without a known end is going."""
        if self._stopping:
            raise Interrupted
        self._update(line, self._clock())

    def _update(self, line: str, now: float) -> None:
        if self._terminal.live:
            self._terminal.show(line)
        elif now - self._shown_at >= PLAIN_INTERVAL_SECONDS:
            self._print(line)

    def _print(self, line: str) -> None:
        self._shown_at = self._clock()
        self._terminal.print(line)

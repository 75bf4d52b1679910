"""How far a job is, on the screen: a line that moves on, or a line now and then."""

from collections.abc import Callable
from time import monotonic

from duequeue.cli.terminal import Terminal

PLAIN_INTERVAL_SECONDS = 10.0


class Teller:
    """Tells of a job's progress; see `pipeline.progress.Progress`."""

    def __init__(self, terminal: Terminal, clock: Callable[[], float] = monotonic) -> None:
        self._terminal = terminal
        self._clock = clock
        self._told_at = clock()

    def step(self, what: str) -> None:
        """Something begins."""
        if self._terminal.live:
            self._terminal.show(f"{what} …")
        else:
            self._print(what)

    def at(self, what: str, done: int, parts: int) -> None:
        """So many of its parts are done."""
        line = f"{what}: {done:,} of {parts:,} parts done"
        if self._terminal.live:
            self._terminal.show(line)
        elif self._clock() - self._told_at >= PLAIN_INTERVAL_SECONDS:
            self._print(line)

    def _print(self, line: str) -> None:
        self._told_at = self._clock()
        self._terminal.print(line)

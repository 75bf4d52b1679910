"""How many messages a long command has worked through, on stderr."""

import sys
from time import monotonic

from duequeue.cli.numbers import counted
from duequeue.cli.terminal import Terminal

SECONDS_ON_TERMINAL, SECONDS_ELSEWHERE = 0.2, 10.0


class ProgressCounter:
    """A line on stderr that changes on a terminal, and that comes now and then elsewhere."""

    def __init__(self, done: str, *, quiet: bool) -> None:
        self._done = done
        self._quiet = quiet
        self._terminal = Terminal(sys.stderr, quiet=quiet)
        self._seconds = SECONDS_ON_TERMINAL if self._terminal.live else SECONDS_ELSEWHERE
        self._next = monotonic() + self._seconds
        self._began = monotonic()
        self.number = 0

    def add(self, number: int) -> None:
        """Count messages, and show their number if it is time."""
        self.number += number
        if monotonic() >= self._next and not self._quiet:
            self._next = monotonic() + self._seconds
            show = self._terminal.show if self._terminal.live else self._terminal.print
            show(self._line())

    def end(self, also: str = "") -> None:
        """Print the final number."""
        self._terminal.print(self._line() + also)

    def _line(self) -> str:
        per_second = self.number / max(monotonic() - self._began, 0.001)
        return f"{self._done} {counted(self.number, 'message')} ({per_second:,.0f}/s)"

"""How far a job is, in a line."""

from collections.abc import Callable
from time import monotonic

from duequeue.cli.terminal import Terminal

PLAIN_INTERVAL_SECONDS = 10.0


class Interrupted(Exception):
    """The job was told to stop, and is between two steps."""


class LineOfProgress:
    """Always fresh on a terminal, elsewhere printed now and then."""

    def __init__(self, terminal: Terminal, clock: Callable[[], float] = monotonic) -> None:
        self._terminal = terminal
        self._clock = clock
        self._began_at = self._shown_at = clock()
        self._stopping = False

    def stop(self) -> None:
        """Let the job end where its next step would begin."""
        self._stopping = True

    def step(self, what: str) -> None:
        """Say what begins."""
        if self._stopping:
            raise Interrupted
        self._began_at = self._clock()
        if self._terminal.live:
            self._terminal.show(what)
        else:
            self._print(what)

    def at(self, what: str, done: int, parts: int) -> None:
        """Say how far it is."""
        now = self._clock()
        self._move_on(
            f"{what}: {done:,} of {parts:,} parts after {now - self._began_at:.0f} s", now
        )

    def still(self, line: str) -> None:
        """Say how it goes on, with no end in sight."""
        if self._stopping:
            raise Interrupted
        self._move_on(line, self._clock())

    def _move_on(self, line: str, now: float) -> None:
        if self._terminal.live:
            self._terminal.show(line)
        elif now - self._shown_at >= PLAIN_INTERVAL_SECONDS:
            self._print(line)

    def _print(self, line: str) -> None:
        self._shown_at = self._clock()
        self._terminal.print(line)

"""The status line of a worker."""

from collections import deque
from collections.abc import Callable
from time import monotonic

from duequeue.cli.terminal import Terminal
from duequeue.cli.worker.tally import Tally
from duequeue.instants import words_for

# Rates and lateness cover the last seconds.
WINDOW_SECONDS = 5.0
PLAIN_INTERVAL_SECONDS = 10.0


def status_line(queue_name: str, now: Tally, earlier: Tally, seconds: float) -> str:
    """Write the total counts, and the rates since `earlier`, which was `seconds` ago."""
    parts = [f"{now.handled:,} handled", f"{now.failed:,} failed", f"{now.buried:,} buried"]
    rate = (now.handled - earlier.handled) / seconds
    parts.append(f"{rate:,.0f}/s" if rate >= 10 or rate == 0 else f"{rate:.1f}/s")  # noqa: PLR2004 - two digits are enough
    if first := now.first_deliveries - earlier.first_deliveries:
        parts.append(f"{words_for((now.lateness - earlier.lateness) / first)} late")
    parts.append(f"{now.in_hand:,} in hand")
    return f"{queue_name}: {', '.join(parts)}"


class Status:
    """Updates the line at once on a terminal, and prints one now and then elsewhere."""

    def __init__(
        self, queue_name: str, terminal: Terminal, clock: Callable[[], float] = monotonic
    ) -> None:
        self._queue_name = queue_name
        self._terminal = terminal
        self._clock = clock
        self._history: deque[tuple[float, Tally]] = deque([(clock(), Tally())])
        self._shown_at = clock()

    def update(self, tally: Tally) -> None:
        """Record the counts, and show the line if it is time."""
        now = self._clock()
        line = self._line(now, tally)
        if self._terminal.live:
            self._terminal.show(line)
        elif now - self._shown_at >= PLAIN_INTERVAL_SECONDS:
            self._shown_at = now
            self._terminal.print(line)

    def finish(self, tally: Tally) -> None:
        """Print the final counts."""
        done = f"{tally.handled:,} handled, {tally.failed:,} failed, {tally.buried:,} buried"
        self._terminal.print(f"{self._queue_name}: stopped, {done}")

    def _line(self, now: float, tally: Tally) -> str:
        window = WINDOW_SECONDS if self._terminal.live else PLAIN_INTERVAL_SECONDS
        self._history.append((now, tally))
        while len(self._history) > 2 and self._history[1][0] <= now - window:  # noqa: PLR2004 - one older than the window is kept
            self._history.popleft()
        earlier_at, earlier = self._history[0]
        return status_line(self._queue_name, tally, earlier, max(now - earlier_at, 0.001))

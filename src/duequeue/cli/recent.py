"""The newest rows of a history, and which of them are new since the last look."""

from collections import Counter
from collections.abc import Callable

from duequeue.settled import Settled

SMALLEST_WINDOW, LARGEST_WINDOW = 100, 100_000


class Recent:
    """Looks at the end of a history, again and again.

    A row that commits late may be older than one that was seen. So rows are compared one by one,
    as far back as the last look went, and not by their instants alone.
    """

    def __init__(self, look: Callable[[int], list[Settled]], number: int) -> None:
        self._look = look
        self._window = max(number, SMALLEST_WINDOW)
        self._rows = look(self._window)

    def newest(self, number: int) -> list[Settled]:
        """Return the newest rows of the last look, the oldest of them first."""
        return self._rows[:number][::-1]

    def news(self) -> list[Settled]:
        """Look again, and return the rows that were not there before, the oldest first."""
        window = self._window
        rows = self._look(window)
        while len(rows) == window < LARGEST_WINDOW and not self._reaches_back(rows):
            window = min(10 * window, LARGEST_WINDOW)
            rows = self._look(window)
        seen = Counter(self._rows)
        new = [row for row in (Counter(rows) - seen).elements() if self._is_in_reach(row)]
        self._rows = rows[: self._window]
        return sorted(new, key=lambda row: row.settled_at)

    def _reaches_back(self, rows: list[Settled]) -> bool:
        return not self._rows or rows[-1].settled_at <= self._rows[0].settled_at

    def _is_in_reach(self, row: Settled) -> bool:
        """Return whether the last look would have seen a row, had it been there."""
        return len(self._rows) < self._window or row.settled_at > self._rows[-1].settled_at

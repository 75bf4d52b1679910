"""The ends of the leases that this process holds."""

from collections.abc import Iterable
from heapq import heappop, heappush


class LeaseEnds:
    """Remembers for each claim how many of its leases are not settled, and when they end."""

    def __init__(self) -> None:
        self._held: dict[int, int] = {}  # token of the claim -> leases not settled yet
        self._ends: list[tuple[int, int]] = []  # end, token
        self._ends_of: dict[int, int] = {}  # token -> how often it is in the heap

    def add(self, token: int, count: int, end: int) -> None:
        """Note a claim."""
        self._held[token] = count
        self._ends_of[token] = 1
        heappush(self._ends, (end, token))

    def move(self, token: int, end: int) -> None:
        """Note that a lease of a claim ends at another time."""
        if token in self._held:
            self._ends_of[token] = self._ends_of.get(token, 0) + 1
            heappush(self._ends, (end, token))

    def settle(self, tokens: Iterable[int]) -> None:
        """Note settled leases by the tokens of their claims, one token for each lease."""
        for token in tokens:
            left = self._held.get(token, 0) - 1
            if left > 0:
                self._held[token] = left
            else:
                self._held.pop(token, None)

    def ran_out(self, now: int) -> bool:
        """Return whether a lease may have run out since the last call."""
        ran_out = False
        while self._ends and (self._ends[0][0] <= now or self._ends[0][1] not in self._held):
            _, token = heappop(self._ends)
            ran_out = ran_out or token in self._held
            self._ends_of[token] -= 1
            if self._ends_of[token] == 0:  # no lease of this claim can run out any more
                del self._ends_of[token]
                self._held.pop(token, None)
        return ran_out

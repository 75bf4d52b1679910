"""The ends of the leases that this process holds."""

from collections import Counter
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from math import inf

# How many ends of settled claims may stay in the heap, even if there are few others.
MOST_LEFT_OVER = 100


class LeaseEnds:
    """Remembers for each claim how many of its leases are not settled, and when they end."""

    def __init__(self) -> None:
        self._held: dict[int, float] = {}  # token of the claim -> leases not settled yet
        self._ends: list[tuple[int, int]] = []  # end, token
        self._ends_of: Counter[int] = Counter()  # token -> how often it is in the heap
        self._left_over = 0  # ends in the heap whose claims are settled
        self._last_end = -inf  # the latest end at which a lease may have run out
        self._was_before_last_end = False

    def add(self, token: int, count: int, end: int) -> None:
        """Note a claim."""
        self._held[token] = count
        self._ends_of[token] = 1
        heappush(self._ends, (end, token))

    def move(self, token: int, end: int) -> None:
        """Note that a lease of a claim ends at another time, perhaps after it had ended."""
        if token not in self._held:
            # How many leases of a forgotten claim are extended is not known, so none counts as
            # settled.
            self._held[token] = inf
            self._left_over -= self._ends_of[token]
        self._ends_of[token] += 1
        heappush(self._ends, (end, token))

    def settle(self, tokens: Iterable[int]) -> None:
        """Note settled leases by the tokens of their claims, one token for each lease."""
        for token in tokens:
            left = self._held.get(token, 0) - 1
            if left > 0:
                self._held[token] = left
            elif self._held.pop(token, None) is not None:
                self._left_over += self._ends_of[token]
        if self._left_over > len(self._ends) // 2 + MOST_LEFT_OVER:
            self._forget_settled()

    def ran_out(self, now: int) -> bool:
        """Return whether a lease may have run out since the last call.

        A clock that was set back makes leases live again, and their ends are forgotten. So the
        answer is yes until the clock has passed the last of these ends again.
        """
        is_before_last_end = now < self._last_end
        ran_out = is_before_last_end or self._was_before_last_end
        self._was_before_last_end = is_before_last_end
        while self._ends and (self._ends[0][0] <= now or self._ends[0][1] not in self._held):
            end, token = heappop(self._ends)
            if token in self._held:
                ran_out, self._last_end = True, max(self._last_end, end)
            else:
                self._left_over -= 1
            self._ends_of[token] -= 1
            if self._ends_of[token] == 0:  # no lease of this claim can run out any more
                del self._ends_of[token]
                self._held.pop(token, None)
        return ran_out

    def _forget_settled(self) -> None:
        """Remove the ends of settled claims, which otherwise wait for older leases to end."""
        self._ends = [(end, token) for end, token in self._ends if token in self._held]
        heapify(self._ends)
        self._ends_of = Counter(token for _, token in self._ends)
        self._left_over = 0

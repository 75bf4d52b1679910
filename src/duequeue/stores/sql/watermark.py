"""Where the next claim starts to look.

A claim that always began at the earliest message would walk again and again over the leased
and the just deleted ones. So the queues of one process remember the last row they claimed and
go on from there. Messages can still turn up before this mark: they were offered for an earlier
instant, their leases ran out, or their rows were committed late. An offer in this process lowers
the mark. For all other cases the mark is forgotten once per sweep interval, when a queue is
opened, when a lease of this process runs out, and when a claim finds nothing.
"""

import threading
from collections import Counter
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from math import inf
from typing import NamedTuple

from duequeue.port.listing import Position

NEVER = 2**63 - 1

# How many ends of settled claims may stay in the heap, even if there are few others.
MOST_LEFT_OVER = 100


BEGINNING = Position(-NEVER - 1, 0)


class Start(NamedTuple):
    """Where a claim starts, and the version of the mark that it comes from."""

    position: Position
    version: int


class Claim(NamedTuple):
    """What a claim took: the token and number of its leases, and their end."""

    token: int
    leases: int
    until: int


class Watermark:
    """The mark of one kind of message in one process; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._position = BEGINNING
        self._version = 0
        self._looked_until = -NEVER
        self._swept_at = -NEVER
        self._lease_ends = LeaseEnds()

    def start_over(self) -> None:
        """Make the next claim look from the beginning."""
        with self._lock:
            self._swept_at = -NEVER

    def start(self, now: int, sweep_interval: int) -> Start:
        """Return where to look at `now`."""
        with self._lock:
            self._looked_until = max(self._looked_until, now)
            in_time = self._swept_at <= now < self._swept_at + sweep_interval
            if self._lease_ends.ran_out(now) or not in_time:
                self._forget(now)
            return Start(self._position, self._version)

    def sweep(self, now: int) -> Start:
        """Forget the mark, and look from the beginning."""
        with self._lock:
            self._forget(now)
            return Start(self._position, self._version)

    def claimed(self, start: Start, last: Position, claim: Claim) -> None:
        """Note a claim and its last row, unless the mark was lowered since the claim began."""
        with self._lock:
            self._lease_ends.add(claim.token, claim.leases, claim.until)
            if start.version == self._version:
                self._position = max(self._position, last)

    def extended(self, tokens: Iterable[int], until: int) -> None:
        """Note leases that end at another time, by the tokens of their claims."""
        with self._lock:
            for token in set(tokens):
                self._lease_ends.move(token, until)

    def settled(self, tokens: Iterable[int]) -> None:
        """Note leases that have ended, by the tokens of their claims."""
        with self._lock:
            self._lease_ends.settle(tokens)

    def lower(self, due_at: int) -> None:
        """Make sure that the next claims see what was just committed for `due_at`."""
        with self._lock:
            if due_at > self._looked_until:
                return  # no claim has come that far
            # This is needed even if the mark is lower, as a running claim may be about to raise it.
            self._version += 1
            self._position = min(self._position, Position(due_at, 0))

    def _forget(self, now: int) -> None:
        self._version += 1
        self._position = BEGINNING
        self._swept_at = now


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

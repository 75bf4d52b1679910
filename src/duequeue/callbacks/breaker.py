"""A circuit breaker: it holds back callbacks to an endpoint that keeps failing.

An endpoint is `active` until at least 70 % of at least ten calls within five minutes have failed.
Then it is `open`: no calls are made to it, for 30 seconds at first. After that it is `probing`:
one call is made. If this call succeeds, the endpoint is active again. If it fails, the endpoint is
open for twice as long as before, up to ten minutes.
"""

from dataclasses import dataclass
from typing import Literal

State = Literal["active", "open", "probing"]


@dataclass(frozen=True, slots=True)
class BreakerRule:
    """When a breaker opens and for how long, in milliseconds."""

    failure_share: float = 0.7
    fewest_calls: int = 10
    window: int = 5 * 60_000
    first_pause: int = 30_000
    longest_pause: int = 10 * 60_000


DEFAULT_RULE = BreakerRule()

_SLICES = 10


class Breaker:
    """The state of one endpoint; all times are milliseconds, passed in.

    Each call has a permit, which is the number of the state that it began in. So a slow call that
    began before the breaker opened says nothing about the probe that runs when it ends.
    """

    def __init__(self, now: int, rule: BreakerRule = DEFAULT_RULE) -> None:
        self._rule = rule
        self._turn = 0
        self.state: State = "active"
        self.reason = ""
        self.since = now
        self._pause = 0
        self._next_probe_at = now
        self._window = _Window(rule.window)

    def wait(self, now: int) -> int:
        """Return in how many milliseconds a call may begin; 0 means now.

        A probe that does not report back in time counts as lost, and another one may begin.
        """
        if self.state == "active":
            return 0
        # No wait is longer than the pause, even if the clock was set back.
        return min(max(0, self._next_probe_at - now), self._pause)

    def begin(self, now: int) -> int | None:
        """Return the permit of a call that begins now, or None if it must not begin."""
        if self.wait(now) > 0:
            return None
        if self.state == "open":
            self._become("probing", now, self.reason)
        self._next_probe_at = now + self._pause
        return self._turn

    def succeeded(self, permit: int, now: int) -> None:
        """Note that a call was answered."""
        if permit != self._turn:
            return
        if self.state == "probing":
            self._pause = 0
            self._become("active", now, "")
        else:
            self._window.add(now, failed=False)

    def failed(self, permit: int, now: int, reason: str) -> None:
        """Note that a call failed, and why."""
        if permit != self._turn:
            return
        if self.state == "probing":
            self._open(now, reason)
            return
        self._window.add(now, failed=True)
        calls, failures = self._window.counts()
        enough = calls >= self._rule.fewest_calls
        if enough and failures >= self._rule.failure_share * calls:
            self._open(now, f"{failures} of the last {calls} calls failed, the last one: {reason}")

    def gave_up(self, permit: int) -> None:
        """Note that a call was cancelled, which proves nothing; another probe may begin."""
        if permit == self._turn and self.state == "probing":
            self._next_probe_at = 0

    def _open(self, now: int, reason: str) -> None:
        longer = self._pause * 2 if self._pause else self._rule.first_pause
        self._pause = min(longer, self._rule.longest_pause)
        self._next_probe_at = now + self._pause
        self._become("open", now, reason)

    def _become(self, state: State, now: int, reason: str) -> None:
        self._turn += 1
        self.state = state
        self.reason = reason
        self.since = now
        self._window = _Window(self._rule.window)


class _Window:
    """The calls of the last minutes, counted in slices of time."""

    def __init__(self, length: int) -> None:
        self._slice = max(1, length // _SLICES)
        self._counts: dict[int, list[int]] = {}

    def add(self, now: int, *, failed: bool) -> None:
        """Count a call."""
        latest = now // self._slice
        if latest not in self._counts:
            self._forget_before(latest)
        counts = self._counts.setdefault(latest, [0, 0])
        counts[0] += 1
        counts[1] += failed

    def counts(self) -> tuple[int, int]:
        """Return how many calls there were, and how many of them failed."""
        calls = sum(counts[0] for counts in self._counts.values())
        return calls, sum(counts[1] for counts in self._counts.values())

    def _forget_before(self, latest: int) -> None:
        """Forget old slices, and those from before the clock was set back."""
        kept = range(latest - _SLICES + 1, latest + 1)
        self._counts = {n: counts for n, counts in self._counts.items() if n in kept}

"""One endpoint as a push process sees it: what runs, what waits, and whether more may begin."""

from collections import Counter, deque
from typing import NamedTuple

from duequeue.callbacks.answer import Accepted, Kept, Meaning, SwitchedOff, TryLater
from duequeue.callbacks.breaker import Breaker
from duequeue.callbacks.endpoint import Endpoint
from duequeue.callbacks.lease_keeper import Held
from duequeue.callbacks.rate import RateLimit
from duequeue.callbacks.records import Condition, StoredEndpoint
from duequeue.instants import MILLISECOND


class CallPermit(NamedTuple):
    """Lets a call begin, and says later whether its outcome still counts."""

    breaker: Breaker
    turn: int


class Lane:
    """The calls to one endpoint; all times are milliseconds, passed in.

    Its breaker and its rate belong to this process, which does not know about other ones.
    """

    def __init__(self, entry: StoredEndpoint, now: int) -> None:
        self.entry = entry
        self.running = 0
        self.calls: Counter[str] = Counter()  # by result
        self.waiting: deque[Held] = deque()
        self.is_gone = False  # whether the endpoint was removed
        self._switched_off: Condition | None = None  # by the receiver, and not stored yet
        self._rate = _rate(entry.endpoint)
        self._allowed = entry.endpoint.concurrency
        self._reset(now)

    @property
    def endpoint(self) -> Endpoint:
        """The definition."""
        return self.entry.endpoint

    def update(self, entry: StoredEndpoint, now: int) -> None:
        """Use what is stored now; an endpoint that was enabled again starts as if it were new."""
        if entry.endpoint.rate != self.endpoint.rate:
            self._rate = _rate(entry.endpoint)
        if entry.enabled != self.entry.enabled:
            self._reset(now)
        if entry.endpoint.url != self.endpoint.url:  # the lane knows only about the old URL
            self._reset(now)
        self.entry = entry

    def stored(self, condition: Condition | None) -> None:
        """Note that a condition of this lane was stored."""
        if condition is not None and condition.state == "disabled":
            self.entry = self.entry._replace(switched_off=condition)
            self._switched_off = None
        else:
            self.entry = self.entry._replace(health=condition)

    @property
    def _is_off(self) -> bool:
        return self._switched_off is not None or self.entry.switched_off is not None

    def is_shut(self, now: int) -> bool:
        """Return whether the endpoint gets no calls for now, for a reason other than its rate."""
        if self._is_off:
            return True
        return bool(self._breaker.wait(now) or self._throttle_left(now))

    def wait(self, now: int) -> int | None:
        """Return in how many milliseconds a call may begin, or None if only a change allows it."""
        if self._is_off:
            return None
        rate = 0 if self._rate is None else self._rate.wait(now)
        return max(rate, self._breaker.wait(now), self._throttle_left(now))

    def free(self, now: int) -> int:
        """Return how many calls may begin now."""
        if self.wait(now) != 0:
            return 0
        if self._breaker.state != "active":
            return 1
        free = min(self._allowed, self.endpoint.concurrency) - self.running
        return max(0, free if self._rate is None else min(free, self._rate.free(now)))

    def room(self, now: int) -> int:
        """Return how many messages to fetch: those that may be sent now, and some for later.

        It is 0 while enough messages wait, so that a poll brings several at once.
        """
        is_fast = self._rate is None and self._allowed >= self.endpoint.concurrency
        ahead = self.endpoint.concurrency if is_fast and not self.is_shut(now) else 0
        if len(self.waiting) > ahead // 2:
            return 0
        return max(0, self.free(now) + ahead - len(self.waiting))

    def begin(self, now: int) -> CallPermit | None:
        """Count a call that begins now, and return its permit, or None if it must not begin.

        The caller has seen that one is free.
        """
        turn = self._breaker.begin(now)
        if turn is None:
            return None
        self.running += 1
        if self._rate is not None:
            self._rate.take(now)
        return CallPermit(self._breaker, turn)

    def end(self, permit: CallPermit, meaning: Meaning | None, now: int) -> None:
        """Note the outcome of a call; None if it was cancelled.

        It says nothing about an endpoint that was enabled again, or got another URL, meanwhile.
        """
        self.running -= 1
        self.calls[_result(meaning)] += 1
        if permit.breaker is self._breaker:
            self._learn(permit.turn, meaning, now)

    def _learn(self, turn: int, meaning: Meaning | None, now: int) -> None:
        match meaning:
            case None | TryLater(was_called=False):
                self._breaker.gave_up(turn)
            case TryLater(reason, delay, blames_endpoint=True):
                self._breaker.failed(turn, now, reason)
                self._allowed = 1 if self._breaker.state == "open" else self._allowed
                if delay is not None:
                    self._throttle(now, now + delay // MILLISECOND, reason)
            case SwitchedOff(reason):
                self._breaker.gave_up(turn)
                if not self._is_off:
                    self._switched_off = Condition("disabled", reason, now)
            case _:
                self._breaker.succeeded(turn, now)
                # After an outage, calls come back slowly: twice as many after each success.
                self._allowed = min(2 * self._allowed, self.endpoint.concurrency)

    def condition(self, now: int) -> Condition | None:
        """Return what holds calls back, if anything does."""
        if self._is_off:
            return self.entry.switched_off or self._switched_off
        if self._breaker.state != "active":
            since, until = self._breaker.since, now + self._breaker.wait(now)
            return Condition("open", self._breaker.reason, since, until)
        if self._throttle_left(now):
            return Condition("throttled", self._throttled_by, self._throttled_at, self._until)
        return None

    def state(self, now: int) -> str:
        """Return what this process thinks of the endpoint, in one word."""
        if not self._is_off and self._breaker.state != "active":
            return self._breaker.state
        condition = self.condition(now)
        return "active" if condition is None else condition.state

    def _reset(self, now: int) -> None:
        self._switched_off = None
        self._breaker = Breaker(now)
        self._allowed = self.entry.endpoint.concurrency
        self._until = self._throttled_at = now
        self._throttled_by = ""

    def _throttle(self, now: int, until: int, reason: str) -> None:
        if until > self._until:
            self._throttled_at = now if now >= self._until else self._throttled_at
            self._until, self._throttled_by = until, reason

    def _throttle_left(self, now: int) -> int:
        if now >= self._until:
            return 0
        # A clock that was set back must not make the pause longer.
        return min(self._until - now, max(0, self._until - self._throttled_at))


def _result(meaning: Meaning | None) -> str:
    match meaning:
        case None | TryLater(was_called=False):
            return "cancelled"
        case Accepted() | Kept():
            return "accepted"
        case TryLater():
            return "failed"
        case _:
            return "refused"


def _rate(endpoint: Endpoint) -> RateLimit | None:
    return None if endpoint.rate is None else RateLimit(endpoint.rate)

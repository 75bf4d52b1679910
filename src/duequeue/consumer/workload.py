"""What a consumer has in hand, without threads or loops: whoever uses it holds the lock."""

from collections import deque
from datetime import timedelta
from typing import Generic, NamedTuple, TypeVar

from duequeue.leased import LeasedMessage
from duequeue.verdict import Verdict

P = TypeVar("P", bound=LeasedMessage)  # type: ignore[type-arg] # any payload

# Unsettled messages, in batches, beyond which nothing more is fetched.
BACKLOG = 5
# For how long acks are gathered into one statement.
GATHER_SECONDS = 0.002
PAUSE_AFTER_ERROR = 1.0
# How long a stop waits for handlers.
GRACE = timedelta(seconds=30)
# How long it then waits for those it has cancelled to clean up.
CLEAN_UP_SECONDS = 5.0


class Stopped(BaseException):
    """Ends a waiting poll when its consumer stops."""


class Done(NamedTuple, Generic[P]):
    """A handled message, and what is to become of it."""

    message: P
    verdict: Verdict


class Workload(Generic[P]):
    """Fetched, running and handled messages."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._waiting: deque[P] = deque()
        self._running: dict[int, P] = {}
        self._done: list[Done[P]] = []
        self._being_settled = 0
        self._most = batch  # to be waiting at a time
        self._was_full = False

    def room(self) -> int:
        """Return how many messages to fetch now; none while half of what may wait is there."""
        if len(self._waiting) > self._most // 2 or len(self._done) > BACKLOG * self._batch:
            return 0
        return min(self._batch, self._most - len(self._waiting))

    def add(self, fetched: list[P], room: int) -> None:
        """Take in what was fetched into that room.

        One batch may wait. But while as much is due as there is room for, and handlers are done
        with all of it before the next is fetched, two may.
        """
        full = len(fetched) == room
        outrun = full and self._was_full and not (self._waiting or self._running)
        self._most = 2 * self._batch if outrun else self._batch
        self._was_full = full
        self._waiting.extend(fetched)

    def take(self) -> P | None:
        """Hand out the next message."""
        if not self._waiting:
            return None
        message = self._waiting.popleft()
        self._running[id(message)] = message
        return message

    def finish(self, message: P, verdict: Verdict | None) -> None:
        """Take a handled message back; without a verdict its handler has settled it."""
        if self._running.pop(id(message), None) is not None and verdict is not None:
            self._done.append(Done(message, verdict))

    def take_done(self) -> list[Done[P]]:
        """Hand over what is to be settled."""
        done, self._done = self._done, []
        self._being_settled += len(done)
        return done

    def settled(self, group: list[Done[P]], *, done: bool) -> None:
        """Let go of some of that; what could not be settled comes back."""
        self._being_settled -= len(group)
        if not done:
            self._done = group + self._done

    def take_waiting(self) -> list[P]:
        """Hand over what nobody has begun to handle."""
        waiting, self._waiting = list(self._waiting), deque()
        return waiting

    def take_running(self) -> list[P]:
        """Give up on what still runs."""
        running, self._running = list(self._running.values()), {}
        return running

    def held(self) -> list[P]:
        """Return what must not lose its lease."""
        running = (each for each in self._running.values() if not (each.lost or each.settled))
        return [*self._waiting, *running]

    def lose(self, lost: list[P]) -> None:
        """Mark messages whose leases are gone, and do not begin them."""
        for message in lost:
            message.lost = True
        self._waiting = deque(message for message in self._waiting if not message.lost)

    @property
    def waiting(self) -> int:
        """How many messages nobody has begun to handle."""
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        """Whether nothing runs."""
        return not self._running

    @property
    def in_hand(self) -> int:
        """How many messages are fetched, running, or not settled yet."""
        return len(self._waiting) + len(self._running) + len(self._done) + self._being_settled

    @property
    def unsettled(self) -> int:
        """How many handled messages nobody has begun to settle."""
        return len(self._done)

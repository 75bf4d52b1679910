"""The messages that a consumer holds, and how far it has stopped, without threads or loops."""

import math
from collections import deque
from typing import Generic, NamedTuple, TypeVar

from duequeue.consumer.late_handlers import LateHandlers
from duequeue.consumer.solitude import Caution
from duequeue.leased import LeasedMessage
from duequeue.verdict import Verdict

P = TypeVar("P", bound=LeasedMessage)

# Nothing more is fetched while more batches than this are handled but not settled.
BACKLOG = 5


class Done(NamedTuple, Generic[P]):
    """A handled message and its verdict."""

    message: P
    verdict: Verdict


def _is_held(message: LeasedMessage) -> bool:
    """Return whether a message needs its lease, as after a transaction that is rolled back."""
    return not message.lost and (message.settled_within or not message.settled)


class Workload(Generic[P]):
    """Messages that wait for a handler, run, or are handled but not settled.

    The caller of a method holds the lock of the handover; the flags may be read without it. So may
    what is in hand, because a message comes to its next place before it leaves the one before.
    """

    def __init__(
        self, batch: int, late: LateHandlers | None = None, caution: Caution[P] | None = None
    ) -> None:
        self._batch = batch
        self.caution = Caution[P]() if caution is None else caution
        self._waiting: deque[P] = deque()
        self._running: dict[int, P] = {}
        self.late = late
        self._done: list[Done[P]] = []
        self._being_settled = 0
        self._most_waiting = batch
        self._was_full = False
        self.held_up = False  # while another consumer of the process must be alone
        self.store_fails = False
        self.stopping = False
        self.hard = False
        self.last_round = False
        self.stopped = False
        self.gives_up_at = math.inf  # when the roles try the store for the last time

    def room(self) -> int:
        """Return how many messages to fetch now.

        It is 0 while more than half of the messages that may wait are still waiting, and while
        too many are not settled.
        """
        if self.stalled:
            return 0
        too_many_wait = len(self._waiting) > self._most_waiting // 2
        if too_many_wait or len(self._done) > BACKLOG * self._batch:
            return 0
        room = min(self._batch, self._most_waiting - len(self._waiting))
        if not self.caution.limits:
            return room
        if self.held_up and self.caution.always:
            return 0
        return min(room, self.caution.room(self.in_hand))

    def add(self, fetched: list[P], room: int) -> list[P]:
        """Add the messages of a poll that asked for as many as there was room for.

        One batch may wait, or two while polls bring all that they ask for and handlers are done
        with it before the next poll returns. Return the messages to give back.
        """
        full = len(fetched) == room
        outrun = full and self._was_full and not (self._waiting or self._running)
        self._most_waiting = 2 * self._batch if outrun else self._batch
        self._was_full = full
        self.store_fails = False
        kept, returned = self.caution.sort(fetched)
        self._waiting.extend(kept)
        if self.held_up and self.caution.always:  # it would be blamed for the death of the process
            return returned + self.take_waiting()
        return returned

    def take(self) -> P | None:
        """Return the next message to handle, which runs from now on."""
        if not self._waiting:
            return None
        message = self._waiting[0]
        self._running[id(message)] = message  # before the look, so that one of the two sees it
        if self.held_up and not self.caution.always:
            del self._running[id(message)]
            return None
        self._waiting.popleft()
        if self.late is not None:
            self.late.begin(id(message))
        return message

    def finish(self, message: P, verdict: Verdict | None) -> bool:
        """Take a handled message back; without a verdict there is nothing to settle.

        Return whether the thread may go on. If another thread has replaced it, it usually may not.
        """
        if id(message) in self._running:
            if verdict is not None:
                self._done.append(Done(message, verdict))
            del self._running[id(message)]
        return self.late is None or self.late.end(id(message))

    def take_overdue(self) -> list[P]:
        """Remove and return the messages whose handlers have run for too long."""
        overdue = [] if self.late is None else self.late.take_overdue()
        return [self._running.pop(each) for each in overdue if each in self._running]

    def give_up(self, message: P, verdict: Verdict | None) -> bool:
        """Mark a message as lost whose handler runs too long; return whether to replace its thread.

        Its verdict counts, but what its handler does later does not.
        """
        message.lost = True
        if verdict is not None:
            self._done.append(Done(message, verdict))
        return self.late is not None and not self.stopping and self.late.replace(id(message))

    def take_done(self) -> list[Done[P]]:
        """Remove and return the messages to settle."""
        done = self._done
        self._being_settled += len(done)
        self._done = []
        return done

    def settled(self, group: list[Done[P]], *, done: bool) -> None:
        """Forget messages that were taken to be settled, or keep them for another try."""
        if done:
            self.store_fails = False
        else:
            self._done = group + self._done
        self._being_settled -= len(group)

    def held(self) -> list[P]:
        """Return the messages whose leases must not end."""
        return [*self._waiting, *(each for each in self._running.values() if _is_held(each))]

    def lose(self, lost: list[P]) -> list[P]:
        """Mark messages as lost, so that none of them is begun; return those not marked before."""
        newly_lost = [message for message in lost if not message.lost]
        for message in newly_lost:
            message.lost = True
        self._waiting = deque(message for message in self._waiting if not message.lost)
        return newly_lost

    def stop(self, *, hard: bool) -> bool:
        """Begin to stop, and return whether this is the first call."""
        first, self.stopping = not self.stopping, True
        self.hard = self.hard or hard
        return first

    def take_waiting(self) -> list[P]:
        """Remove and return the messages that no handler has begun."""
        waiting, self._waiting = list(self._waiting), deque()
        return waiting

    def give_up_running(self) -> list[P]:
        """Lose the messages that still run, so that their verdicts no longer count.

        The keeper then settles for the last time. Return the messages not marked as lost before.
        """
        running, self._running = list(self._running.values()), {}
        if self.late is not None:
            self.late.stop_measuring()
        self.last_round = True
        return self.lose(running)

    def end(self) -> None:
        """Let every role end, whatever is still in hand."""
        self.stopping = self.last_round = self.stopped = True

    @property
    def stalled(self) -> bool:
        """Whether no handler can begin, because handlers that hang occupy all threads."""
        return self.late is not None and self.late.stalled

    @property
    def waiting(self) -> int:
        """The number of messages that no handler has begun."""
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        """Whether no handler runs."""
        return not self._running

    @property
    def busy(self) -> bool:
        """Whether a handler runs or is about to begin."""
        return bool(self._waiting or self._running)

    @property
    def at_rest(self) -> bool:
        """Whether nothing would be buried if the process died now.

        While the store fails, nobody waits for what is handled to be settled.
        """
        if self.stopped or not self.caution.always:
            return self.stopped or self.idle
        return not self.busy if self.store_fails else not self.in_hand

    @property
    def in_hand(self) -> int:
        """The number of messages that wait, run, or are not settled yet."""
        return len(self._waiting) + len(self._running) + len(self._done) + self._being_settled

    @property
    def unsettled(self) -> int:
        """The number of handled messages that the keeper has not taken yet."""
        return len(self._done)

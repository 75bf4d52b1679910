"""The search for an order of the operations on one key that the model allows.

Each operation must take effect at one moment between its beginning and its end. The search tries
the operations that may come next, and remembers where it has been. If it is given a broken promise,
it allows what that promise forbids. So the checker can find out which promise was broken.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.fire import model
from tests.fire.entries import Call
from tests.fire.histories import SETTLING, History, Operation
from tests.fire.logs import FOREVER
from tests.fire.model import NOBODY, NOTHING, SOMEBODY, Stored
from tests.fire.violations import Broken

MOST_STEPS = 30_000


class TooHard(Exception):
    """The search was given up."""


@dataclass
class Search:
    """The search over the operations of one key."""

    operations: Sequence[Operation]
    history: History
    broken: Broken | None = None

    def __post_init__(self) -> None:
        self._awaited = {id(each.after) for each in self.operations if each.after is not None}
        seen = [each.delivered.attempt for each in self.operations if each.delivered]
        self._most_attempts = max(seen, default=0)

    def succeeds(self) -> bool:
        """Return whether there is an order in which every answer is right."""
        order = sorted(self.operations, key=_likelihood)
        indices = {id(each): index for index, each in enumerate(order)}
        required = sum(1 << index for index, each in enumerate(order) if each.required)
        start = (0, NOTHING)
        seen, pending = {start}, [start]
        while pending:
            done, stored = pending.pop()
            if done & required == required:
                return True
            if len(seen) > MOST_STEPS:
                raise TooHard(f"{len(order)} operations on {order[0].call.key!r}")
            for done_then, stored_then in reversed(list(self._steps(order, indices, done, stored))):
                step = (done_then, self._relevant(stored_then))
                if step not in seen:
                    seen.add(step)
                    pending.append(step)
        return False

    def _steps(
        self, order: Sequence[Operation], indices: dict[int, int], done: int, stored: Stored
    ) -> Iterator[tuple[int, Stored]]:
        left = [(index, each) for index, each in enumerate(order) if not done >> index & 1]
        first_end = min((each.ended for _, each in left if each.required), default=FOREVER)
        before: Operation | None = None
        for index, each in left:
            if each.began > first_end or each is before:
                continue
            before = each  # an operation may be here several times, and one of them is enough
            if each.after is not None and not done >> indices[id(each.after)] & 1:
                continue
            for after in self._effects(stored, each):
                # What need not happen and changes nothing makes no difference, unless another
                # operation comes after it.
                if each.required or after != stored or id(each) in self._awaited:
                    yield done | 1 << index, after
        for after in self._unseen(stored, first_end):
            yield done, after

    def _relevant(self, stored: Stored) -> Stored:
        """Leave out what makes no difference here, so that there are fewer different states."""
        if not self.history.crashes and stored.undone:
            stored = stored._replace(undone=())
        if self.broken is not Broken.CAME_BACK and stored.gone is not None:
            stored = stored._replace(gone=None)
        return stored

    def _unseen(self, stored: Stored, until: int) -> Iterator[Stored]:
        """Return what may happen without a trace in the logs."""
        # Each counts as an attempt, so no more of them are needed than the attempts that were seen.
        useful = stored.present and stored.attempt < self._most_attempts
        if useful and self.history.unseen_since < until:
            # Its lease ends later than the one before it, so `until` stays as a lower bound.
            yield model.claimed(stored, SOMEBODY, stored.until)
        if stored.holder != NOBODY and self.history.given_back_since < until:
            yield stored._replace(holder=NOBODY)
        if stored.holder != NOBODY and self._was_given_back(stored, until):
            yield stored._replace(until=model.LONG_AGO, holder=NOBODY)
        match self.broken:
            case Broken.LOST if stored.present:
                yield model.removed(stored)
            case Broken.BURIAL if stored.burials:
                yield stored._replace(burials=stored.burials[:-1])
            case Broken.CAME_BACK if not stored.present and stored.gone:
                payload, asked, attempt = stored.gone
                for attempts in {0, attempt}:
                    yield NOTHING._replace(
                        present=True,
                        payload=payload,
                        asked=asked,
                        attempt=attempts,
                        burials=stored.burials,
                        gone=stored.gone,
                    )
            case _:
                pass

    def _effects(self, stored: Stored, operation: Operation) -> Iterator[Stored]:
        """Return what may be stored after an operation; nothing if its answer is impossible."""
        if operation.do in SETTLING:
            yield from self._settled(stored, operation)
        elif operation.do == "claim":
            yield from self._claimed(stored, operation)
        elif operation.do == "crash":
            yield from self._undone(stored)
        else:
            right, after = ANSWERS[operation.do](stored, operation.call)
            if operation.answer is None or operation.answer == right:
                yield after
                if operation.do == "reschedule" and self._may_be_fetched(stored, operation):
                    yield after._replace(attempt=stored.attempt + 1)
            elif self.broken is Broken.OUTCOME and operation.do != "burials":
                yield after
                yield stored
                if operation.do == "offer":
                    yield model.written(stored, operation.call)
            elif self.broken is Broken.BURIAL and operation.do == "burials":
                yield stored

    def _may_be_fetched(self, stored: Stored, operation: Operation) -> bool:
        """Return whether a consumer may have leased it unseen, which counts as an attempt.

        A message that loses its lease while it waits for its handler is not handled.
        """
        useful = stored.present and stored.attempt < self._most_attempts
        return useful and self.history.given_back_since < operation.ended

    def _was_given_back(self, stored: Stored, until: int) -> bool:
        """Return whether somebody may have leased a message whose lease had ended, unseen.

        A clock that is behind then meets a message without a lease, although the lease has not
        ended yet by this clock.
        """
        by_poll = (
            began < until and stored.until <= clock for began, clock in self.history.given_up
        )
        by_consumer = (
            began < until and stored.until <= (until + ahead) // 1000
            for began, ahead in self.history.ahead
        )
        return any(by_poll) or any(by_consumer)

    def _claimed(self, stored: Stored, operation: Operation) -> Iterator[Stored]:
        delivered = operation.delivered
        assert delivered is not None
        content = (stored.payload, stored.asked) == (delivered.payload, delivered.due)
        right = {
            Broken.PAYLOAD: content,
            Broken.ATTEMPT: stored.attempt + 1 == delivered.attempt,
            Broken.EARLY: stored.due <= delivered.at,
            Broken.OVERLAP: stored.until <= delivered.at,
        }
        if stored.present and all(fits or self.broken is why for why, fits in right.items()):
            before = stored._replace(attempt=delivered.attempt - 1)
            yield model.claimed(before, delivered.id, delivered.until)

    def _settled(self, stored: Stored, operation: Operation) -> Iterator[Stored]:
        call, answer = operation.call, operation.answer
        holds = model.holds(stored, call.delivery)
        if holds and answer is not False:
            yield self._after_settling(stored, operation)
        if not holds and not answer:
            yield stored
        if not holds and answer:
            if self.broken is Broken.STALE and stored.present:
                yield self._after_settling(stored, operation)
            elif self.broken is Broken.TWO_ACKS:
                yield stored
        if holds and answer is False and self.broken is Broken.REFUSED:
            yield stored

    def _after_settling(self, stored: Stored, operation: Operation) -> Stored:
        match operation.do:
            case "ack":
                return model.removed(stored)
            case "extend" if operation.answer is None:
                return model.extended(stored, min(stored.until, operation.low))
            case "extend":
                return model.extended(stored, operation.low)
            case "release":
                return model.released(stored, operation.low + operation.call.delay)
            case _:
                return model.buried(stored)

    def _undone(self, stored: Stored) -> Iterator[Stored]:
        """Return what a crash may leave: any of the leases since the last write that was synced."""
        for index, (attempt, until, holder) in enumerate(stored.undone):
            yield stored._replace(
                attempt=attempt,
                until=until,
                holder=holder,
                undone=stored.undone[:index],
            )


def _likelihood(operation: Operation) -> tuple[bool, int, bool, int]:
    """Sort what must come soon before what may come at any time, and the likely before the rest.

    A call that settled a message and has no answer most likely succeeded. A second offer of what
    was offered already is the least likely.
    """
    unlikely = not operation.required and operation.do not in SETTLING
    return (not operation.required, operation.ended, unlikely, operation.began)


# The right answer to each call on one key, and what is stored then.
ANSWERS: dict[str, Callable[[Stored, Call], tuple[object, Stored]]] = {
    "offer": model.offered,
    "drop": lambda stored, _: (stored.present, model.removed(stored)),
    "revive": lambda stored, call: model.revived(stored, call.due),
    "revive_one": lambda stored, call: model.revived_one(stored, call.payload, call.due),
    "reschedule": lambda stored, call: model.rescheduled(stored, call.due),
    "contains": lambda stored, _: (stored.present, stored),
    "burials": lambda stored, _: (sorted(stored.burials), stored),
}

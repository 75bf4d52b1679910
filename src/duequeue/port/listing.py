"""Which messages and burials a listing asks for, and how many messages fall due when."""

from typing import NamedTuple

from duequeue.message import State

FIRST = -(2**63)
LAST = 2**63 - 1


class Position(NamedTuple):
    """A position in due order: messages due at the same instant follow one another by id."""

    due_at: int
    id: int


class BurialId(NamedTuple):
    """What identifies a burial; burials are listed in this order.

    Both parts count, because a database may use the number of a deleted row again.
    """

    buried_at: int
    number: int


BEFORE_ALL = BurialId(FIRST, 0)


class Window(NamedTuple):
    """The bounds of a selection at an instant; `after` is exclusive, the others are inclusive."""

    after: Position
    due_until: int
    leased_from: int
    leased_until: int

    def has(self, position: Position, leased_until: int) -> bool:
        """Return whether a message with this position and this end of its lease is inside."""
        is_in_time = self.after < position and position.due_at <= self.due_until
        return is_in_time and self.leased_from <= leased_until <= self.leased_until


class Selection(NamedTuple):
    """The first `limit` messages after a position in due order, of those that match the filters.

    The due time is the current one, which a release changes. `due_to` is exclusive.
    """

    limit: int
    state: State | None = None
    prefix: str = ""
    due_from: int = FIRST
    due_to: int = LAST + 1
    after: Position | None = None

    def window(self, now: int) -> Window:
        """Return the bounds of what is selected at `now`."""
        after = max(self.after or Position(FIRST, 0), Position(self.due_from, 0))
        until = self.due_to - 1
        if self.state is State.FUTURE:
            after = max(after, Position(now, LAST))
        elif self.state is State.DUE:
            until = min(until, now)
        is_leased = self.state is State.LEASED
        is_free = self.state in {State.DUE, State.FUTURE}
        return Window(after, until, now + 1 if is_leased else FIRST, now if is_free else LAST)


class BurialSelection(NamedTuple):
    """The first `limit` burials between two, whose reason contains a text."""

    limit: int
    after: BurialId = BEFORE_ALL
    until: BurialId = BurialId(LAST, LAST)
    reason: str = ""


class RevivedBurials(NamedTuple):
    """How many burials were revived, and the last one that was looked at if there may be more."""

    revived: int
    last: BurialId | None


class Buckets(NamedTuple):
    """Equally long spans of time that begin at `begins_at`; nothing from `until` on counts."""

    begins_at: int
    length: int
    until: int


class DueCounts(NamedTuple):
    """How many free messages are due, and how many fall due later, by the number of their bucket.

    The first bucket has the number 0. A bucket without messages may be left out.
    """

    overdue: int
    ahead: dict[int, int]

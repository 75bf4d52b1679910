"""How many messages are due when."""

from typing import NamedTuple


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

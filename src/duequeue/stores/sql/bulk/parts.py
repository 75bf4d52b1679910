"""Cutting a range into parts that can be read at the same time."""

from duequeue.port.bulk import SnapshotPart


def cut(first: int, last: int, end: int, parts: int, snapshot: str | None) -> list[SnapshotPart]:
    """Cut from `first` to before `last` into at most so many parts of about the same length.

    The last part goes on to `end`: by the time it is read, there may be more.
    """
    many = max(1, min(parts, last - first))
    bounds = [*(first + (last - first) * number // many for number in range(many)), end]
    return [
        SnapshotPart(number, bounds[number], bounds[number + 1], snapshot) for number in range(many)
    ]

"""What a waiting consumer does next, as a pure function."""

from typing import NamedTuple


class Outlook(NamedTuple):
    """What is known after a look that found nothing; instants and durations in milliseconds."""

    now: int
    next_due: int | None
    poll_interval: int
    time_left: float | None


def pause_before_next_look(outlook: Outlook) -> float | None:
    """Return for how many seconds to wait before looking again; None to give up."""
    if outlook.time_left is not None and outlook.time_left <= 0:
        return None
    pauses: list[float] = [outlook.poll_interval]
    if outlook.next_due is not None:
        pauses.append(outlook.next_due - outlook.now)
    if outlook.time_left is not None:
        pauses.append(outlook.time_left)
    return max(0.0, min(pauses)) / 1000

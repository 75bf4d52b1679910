"""How long a waiting consumer waits, as a pure function."""

from typing import NamedTuple


class Outlook(NamedTuple):
    """What is known after a look that found nothing, in milliseconds."""

    now: int
    next_look: int
    time_left: float | None


def pause_before_next_look(outlook: Outlook) -> float | None:
    """Return for how many seconds to wait before looking again; None to give up."""
    pause: float = max(0, outlook.next_look - outlook.now)
    if outlook.time_left is not None:
        if outlook.time_left <= 0:
            return None
        pause = min(pause, outlook.time_left)
    return pause / 1000

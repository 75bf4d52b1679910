"""How long a waiting consumer waits, as a pure function."""

from typing import NamedTuple

# Longer waits overflow in some waiting primitives; waking up once an hour costs nothing.
LONGEST_PAUSE = 3600.0


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
    return min(pause / 1000, LONGEST_PAUSE)

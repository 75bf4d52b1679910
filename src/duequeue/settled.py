"""Settled messages, as the history of a queue returns them."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum


class Outcome(Enum):
    """How a message left the queue."""

    ACKED = "acked"
    BURIED = "buried"
    DROPPED = "dropped"
    REPLACED = "replaced"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Settled:
    """A settled message; `delivered_at` is when the lease began under which it was settled.

    `handler_time` is how long the handler took in that attempt. It is None unless a consumer or the
    pipeline handled the message. Comparisons ignore it.
    """

    key: str
    due_at: datetime
    delivered_at: datetime | None
    settled_at: datetime
    attempts: int
    outcome: Outcome
    handler_time: timedelta | None = field(default=None, compare=False)

    @property
    def lateness(self) -> timedelta | None:
        """How long after its due time it was delivered."""
        return None if self.delivered_at is None else self.delivered_at - self.due_at

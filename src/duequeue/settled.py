"""Settled messages, as the history of a queue returns them."""

from dataclasses import dataclass
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
    """A settled message; `delivered_at` is when the lease began under which it was settled."""

    key: str
    due_at: datetime
    delivered_at: datetime | None
    settled_at: datetime
    attempts: int
    outcome: Outcome

    @property
    def lateness(self) -> timedelta | None:
        """How long after its due time it was delivered."""
        return None if self.delivered_at is None else self.delivered_at - self.due_at

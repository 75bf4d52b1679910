"""What became of a message, told afterwards."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum


class Outcome(Enum):
    """How a message left the queue."""

    ACKED = "acked"
    BURIED = "buried"
    DROPPED = "dropped"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class Settled:
    """A message that was settled; `delivered_at` is when the lease began that settled it."""

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

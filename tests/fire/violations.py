"""The promises that a history can show to be broken, by name."""

from dataclasses import dataclass
from enum import StrEnum


class Broken(StrEnum):
    """The ways in which a promise can be broken."""

    LOST = "an offered message was lost"
    CAME_BACK = "a settled message came back"
    TWO_ACKS = "two acks won"
    STALE = "a lost lease was settled"
    REFUSED = "a held lease was refused"
    OVERLAP = "two leases overlapped"
    EARLY = "a message was delivered early"
    ATTEMPT = "an attempt number was wrong"
    PAYLOAD = "a payload was not the newest"
    BURIAL = "a burial was lost or doubled"
    OUTCOME = "a call returned a wrong outcome"
    ORDER = "messages came out of due order"
    STUCK = "a due message did not come"
    TICK_LOST = "a tick was lost"
    TICK_DOUBLED = "a tick was doubled"
    HISTORY = "the history was wrong"
    HUNG = "a call did not return"
    RAISED = "a call raised an error that is not DueQueue's"
    SEVERAL = "several promises were broken at once"


@dataclass(frozen=True)
class Violation:
    """One broken promise, on which queue and key, and the evidence."""

    broken: Broken
    queue: str
    key: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.broken}: {self.queue!r} {self.key!r}\n{self.evidence}"

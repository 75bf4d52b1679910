"""The settings of a worker, in a form that can be passed to other processes."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from duequeue.codec import CODECS
from duequeue.consumer.bound_handler import ConsumerOptions


@dataclass(frozen=True)
class WorkerSettings:
    """The values of a worker's command line."""

    handler: str
    url: str = field(repr=False)
    queue: str
    codec: str
    concurrency: int
    batch: int
    max_attempts: int | None
    lease: timedelta
    poll_interval: timedelta
    grace: timedelta
    history: bool

    def opening(self) -> dict[str, Any]:
        """Return the options of `open`.

        They include `max_attempts`, because a message may also kill the process that handles it.
        """
        return {
            "codec": CODECS[self.codec],
            "lease": self.lease,
            "poll_interval": self.poll_interval,
            "max_attempts": self.max_attempts,
            "history": self.history,
        }

    def consuming(self) -> ConsumerOptions:
        """Return the options of `consume`."""
        return {"concurrency": self.concurrency, "batch": self.batch}

"""The settings of a worker, in a form that can be passed to other processes."""

from dataclasses import dataclass, field
from datetime import timedelta

from duequeue.backoff import Backoff
from duequeue.consumer.bound_handler import ConsumerOptions
from duequeue.flows.arguments import DEFAULT, Default


@dataclass(frozen=True)
class WorkerSettings:
    """The values of a worker's command line; None stands for those that were not given."""

    handlers: tuple[str, ...]
    url: str | None = field(repr=False)
    queue: str | None
    codec: str | None
    concurrency: int | None
    batch: int | None
    max_attempts: int | Default | None
    backoff: Backoff | None
    lease: timedelta | None
    poll_interval: timedelta | None
    history: bool | None
    grace: timedelta
    log_level: str
    log_format: str
    log_events: bool
    quiet: bool
    health: tuple[str, int] | None

    def consuming(self) -> ConsumerOptions:
        """Return the options of `consume` that were given."""
        given = ConsumerOptions()
        if self.concurrency is not None:
            given["concurrency"] = self.concurrency
        if self.batch is not None:
            given["batch"] = self.batch
        if self.backoff is not None:
            given["backoff"] = self.backoff
        if self.lease is not None:
            given["lease"] = self.lease
        if self.max_attempts is not DEFAULT:
            given["max_attempts"] = self.max_attempts
        return given

"""What `cron.list()` tells."""

from dataclasses import dataclass
from datetime import datetime

from duequeue.schedules.config_hash import ConfigHash


@dataclass(frozen=True, slots=True)
class CronStatus:
    """One installed cron.

    `next_tick` is the earliest in the queue that nobody was given yet, `last_tick` the latest that
    somebody was given. `generation` counts the changes of configuration.
    """

    prefix: str
    config_hash: ConfigHash
    schedule: str
    paused: bool
    next_tick: datetime | None
    last_tick: datetime | None
    generation: int

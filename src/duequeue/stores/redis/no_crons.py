"""The crons of a queue in shards: there are none."""

from typing import NoReturn

from duequeue.errors import StoreError
from duequeue.port.cron_table import CronListing, CronLook, CronSteps, Installation, Installed


class NoCrons:
    """Refuses crons, because their ticks and their notes would be in different slots."""

    def look(self, prefix: str, config_hash: str, since: int) -> CronSteps[CronLook]:  # noqa: ARG002 - the port's signature
        """Refuse."""
        _refuse()

    def install(self, installation: Installation, now: int) -> CronSteps[Installed]:  # noqa: ARG002 - the port's signature
        """Refuse."""
        _refuse()

    def uninstall(self, prefix: str, config_hash: str, now: int) -> CronSteps[int]:  # noqa: ARG002 - the port's signature
        """Refuse."""
        _refuse()

    def pause(self, prefix: str, now: int) -> CronSteps[bool]:  # noqa: ARG002 - the port's signature
        """Refuse."""
        _refuse()

    def resume(self, prefix: str, now: int) -> CronSteps[bool]:  # noqa: ARG002 - the port's signature
        """Refuse."""
        _refuse()

    def listing(self) -> CronSteps[list[CronListing]]:
        """Return nothing."""
        yield from ()
        return []


def _refuse() -> NoReturn:
    raise StoreError(
        "a queue with shards in its url has no crons, because a tick must be in the same slot as "
        "the record of its cron; keep the crons in a queue without shards"
    )

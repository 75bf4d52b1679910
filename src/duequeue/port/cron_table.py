"""The port of the crons: what they ask of a store, beside the messages.

Each method is a part of an operation. What is done with them together, and in which order, is
written once in `flows/cron_steps.py`, and runs in one transaction.
"""

from collections.abc import Generator, Iterable
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

T = TypeVar("T")

CronSteps: TypeAlias = Generator[Any, Any, T]


class CronRow(NamedTuple):
    """What is known of one prefix; without an installation, `installed` is False.

    Up to `created_until`, every tick of the configuration was created or given up.
    """

    config_hash: str = ""
    schedule: str = ""
    generation: int = 0
    installed: bool = False
    paused: bool = False
    created_until: int | None = None

    def runs(self, config_hash: str) -> bool:
        """Tell whether this very configuration is installed."""
        return self.installed and self.config_hash == config_hash


class Glance(NamedTuple):
    """A prefix, and which ticks of one configuration were created from some instant on."""

    row: CronRow
    known: frozenset[int]


class Memory(NamedTuple):
    """Which ticks were created; up to `forgotten_until` none is remembered one by one."""

    known: frozenset[int]
    forgotten_until: int | None

    def allows(self, at: int) -> bool:
        """Tell whether a tick may be created: it never was."""
        forgotten = self.forgotten_until is not None and at <= self.forgotten_until
        return at not in self.known and not forgotten


class TickRow(NamedTuple):
    """A tick that was created, and the key of its message."""

    config_hash: str
    at: int
    key: str


class CronListing(NamedTuple):
    """An installed prefix, with the instants of its next and last ticks."""

    prefix: str
    config_hash: str
    schedule: str
    generation: int
    paused: bool
    next_tick_at: int | None
    last_tick_at: int | None


class CronTable(Protocol):
    """The crons of one kind of message. Prefixes and hashes match by equality."""

    def glance(self, prefix: str, config_hash: str, since: int) -> CronSteps[Glance | None]:
        """Look, in one indexed read, at a prefix and its ticks from `since` on."""

    def lock(self, prefix: str, now: int) -> CronSteps[CronRow]:
        """Keep everybody else from this prefix until the transaction, begun now, ends."""

    def save(self, prefix: str, row: CronRow) -> CronSteps[None]:
        """Write the row of a locked prefix."""

    def hold_undelivered(self, prefix: str) -> CronSteps[list[TickRow]]:
        """Find the ticks that nobody was given yet, and keep them from being claimed."""

    def remove(self, prefix: str, ticks: Iterable[TickRow], now: int) -> CronSteps[None]:
        """Delete ticks that are held, message and memory."""

    def recall(self, prefix: str, config_hash: str, since: int) -> CronSteps[Memory]:
        """Return which ticks were created from `since` on."""

    def remember(self, prefix: str, ticks: Iterable[TickRow]) -> CronSteps[None]:
        """Note ticks that were just created."""

    def forget(self, prefix: str, config_hash: str, now: int, keep: int) -> CronSteps[None]:
        """Put one instant in the place of ticks that ran, except for the newest ones."""

    def listing(self) -> CronSteps[list[CronListing]]:
        """Return what is installed, by prefix."""

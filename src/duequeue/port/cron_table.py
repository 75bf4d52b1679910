"""The port of the crons: what they ask of a store, beside the messages.

For each kind of message, a store keeps three things:

- a **row** for each prefix that was ever installed (`CronRow`);
- a **note** for each tick that was created: its prefix, its configuration, its instant and the key
  of its message;
- for each prefix and configuration with a long past, the instant **forgotten until**. The notes of
  older ticks are gone, and no tick up to that instant is created.

A tick that has a note is never created again, whatever became of its message. A tick is
**undelivered** while its message is in the queue and was never claimed, so that its attempt count
is zero. Only undelivered ticks are removed or replaced. To remove a tick is to delete its message
and its note; a store with history keeps a row of the message as dropped.

Every method is one whole operation, and atomic. Operations on one prefix take effect one after the
other, and no claim comes between the moment at which an operation finds a tick undelivered and the
moment at which it removes or replaces it. How a store achieves that is its own affair: by a lock,
by one script, or by trying again when somebody else was faster.

Instants are epoch milliseconds. Prefixes and hashes match by equality, never as patterns.

`BurialTable.revive` has a duty here too. A revived message is a message like any other, so the note
of its tick must lose the message's key in the same operation.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

T = TypeVar("T")

CronSteps: TypeAlias = Generator[Any, Any, T]

# How many ticks that are over keep their notes, for each prefix and configuration.
REMEMBERED = 100


class Standing(Enum):
    """How a configuration of a prefix stands."""

    RUNNING = auto()
    PAUSED = auto()
    REPLACED = auto()
    UNINSTALLED = auto()


class CronRow(NamedTuple):
    """What a store keeps of one prefix; the defaults describe a prefix without a row.

    `schedule` is for people to read, `generation` counts the changes of configuration. Every tick
    of the configuration up to `created_until` was created or given up; those after it and before
    now were missed.
    """

    config_hash: str = ""
    schedule: str = ""
    generation: int = 0
    installed: bool = False
    paused: bool = False
    created_until: int | None = None

    def standing(self, config_hash: str) -> Standing:
        """Return how a configuration stands."""
        if not self.installed:
            return Standing.UNINSTALLED
        if self.config_hash != config_hash:
            return Standing.REPLACED
        return Standing.PAUSED if self.paused else Standing.RUNNING

    def with_pause(self, now: int, *, paused: bool) -> "CronRow | None":
        """Return the row after the beginning or the end of a pause; None if nothing changes."""
        if not self.installed or self.paused == paused:
            return None
        return self._replace(paused=paused, created_until=self.created_until if paused else now)


class CronLook(NamedTuple):
    """The row of a prefix, and the instants of the ticks of one configuration that have a note."""

    row: CronRow
    known: frozenset[int]


class Tick(NamedTuple):
    """A tick to create: its instant, and its message."""

    at: int
    key: str
    payload: bytes
    due_at: int
    headers: str | None = None


@dataclass(frozen=True)
class Installation:
    """What a node wants of one prefix.

    `ahead` are ticks to come, `missed` are ticks to make up for. An installation that `takes_over`
    becomes the installed configuration, whatever was installed before. Any other only adds ticks,
    and only while its configuration is installed and not paused. `created_until` is the row's new
    value, unless the row's own is later.
    """

    prefix: str
    config_hash: str
    schedule: str = ""
    ahead: Sequence[Tick] = ()
    missed: Sequence[Tick] = ()
    created_until: int | None = None
    takes_over: bool = True

    @property
    def first_at(self) -> int | None:
        """The instant of the earliest tick."""
        return min([tick.at for tick in (*self.missed, *self.ahead)], default=None)


class Installed(NamedTuple):
    """What became of an installation.

    `created` counts the ticks that are new. `due_at` is the earliest due time of the messages that
    were created or updated, for the caller to announce.
    """

    standing: Standing
    created: int = 0
    due_at: int | None = None


class CronListing(NamedTuple):
    """An installed prefix, with the instants of its next and its last tick.

    The next one is the earliest undelivered tick of the installed configuration, the last one is
    the latest tick of any configuration that has a note and is not undelivered.
    """

    prefix: str
    config_hash: str
    schedule: str
    generation: int
    paused: bool
    next_tick_at: int | None
    last_tick_at: int | None


class CronTable(Protocol):
    """The crons of one kind of message."""

    def look(self, prefix: str, config_hash: str, since: int) -> CronSteps[CronLook]:
        """Read the row of a prefix, and which ticks of a configuration from `since` on have a note.

        Every node does this again and again for each of its crons, and mostly finds nothing to do.
        So it should be one cheap read that waits for nobody.
        """

    def install(self, installation: Installation, now: int) -> CronSteps[Installed]:
        """Carry out an installation.

        `cron_rules.decide` says what changes, given what the store holds. When ticks were created,
        the notes of old ones may go: those whose message is no longer in the queue, except for the
        `REMEMBERED` latest ones up to now. The latest instant among those that went is then stored
        as **forgotten until**.
        """

    def uninstall(self, prefix: str, config_hash: str, now: int) -> CronSteps[int]:
        """Remove the undelivered ticks of one configuration, and count them.

        If that configuration is the installed one, nothing is installed any more. Nothing is
        written for a prefix without a row.
        """

    def set_paused(self, prefix: str, now: int, *, paused: bool) -> CronSteps[bool]:
        """Begin a pause of a prefix, or end it.

        The beginning removes the undelivered ticks of every configuration. The end sets
        `created_until` to now, so that none of the pause's ticks counts as missed. Change nothing
        and return False if the prefix is not installed, or already is as it should be.
        """

    def listing(self) -> CronSteps[list[CronListing]]:
        """Return every installed prefix, in the order of their code points."""

"""The port of the burials: the messages of one kind that were taken out of the queue.

Every method is one whole operation, and atomic. Instants are epoch milliseconds.
"""

from collections.abc import Generator
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from duequeue.port.listing import BurialId, BurialSelection, RevivedBurials

T = TypeVar("T")

BurialSteps: TypeAlias = Generator[Any, Any, T]


class StoredBurial(NamedTuple):
    """A buried message as the store keeps it."""

    key: str
    payload: bytes
    asked_at: int
    attempts: int
    reason: str
    buried_at: int
    headers: str | None
    number: int


class BurialTable(Protocol):
    """Lists, revives and deletes burials."""

    def listed(self, selection: BurialSelection) -> BurialSteps[list[StoredBurial]]:
        """Return the selected burials, oldest first."""

    def last(self) -> BurialSteps[BurialId | None]:
        """Return the burial that `listed` lists last."""

    def revive(
        self, key: str, due_at: int, now: int, burial: BurialId | None = None
    ) -> BurialSteps[bool]:
        """Put a burial of a key back into the queue, the newest if none is given.

        Return False, and leave the burial, if the key is live.
        """

    def revive_all(
        self, selection: BurialSelection, due_at: int, now: int
    ) -> BurialSteps[RevivedBurials]:
        """Put the selected burials back, of each key the newest, except where the key is live."""

    def delete(self, burial: BurialId) -> BurialSteps[bool]:
        """Delete one burial."""

    def purge(self, before: int) -> BurialSteps[int]:
        """Delete the burials older than `before`."""

"""How many calls one process makes at a time."""

from collections.abc import Callable, Hashable

from duequeue.errors import InvalidArgument, InvalidType


class Slots:
    """Counts calls; those who find no free slot get one in turn."""

    def __init__(self, most: int) -> None:
        if not isinstance(most, int):
            raise InvalidType("calls", f"must be a whole number, not {most!r}")
        if most < 1:
            raise InvalidArgument("calls", f"must be a whole number of at least 1, not {most!r}")
        self.free = most
        self._waiting: dict[Hashable, Callable[[], None]] = {}

    def take(self) -> None:
        """Count a call that begins; the caller has seen that one is free."""
        self.free -= 1

    def give(self) -> None:
        """Count a call that has ended, and let the next ones begin theirs."""
        self.free += 1
        while self.free > 0 and self._waiting:
            self._waiting.pop(next(iter(self._waiting)))()

    def wait(self, who: Hashable, begin: Callable[[], None]) -> None:
        """Call `begin` when a slot is free and all who waited before had their turn."""
        self._waiting.setdefault(who, begin)

    def has_waiting(self, who: Hashable) -> bool:
        """Return whether somebody waits for a turn."""
        return who in self._waiting

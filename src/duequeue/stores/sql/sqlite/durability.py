"""Which commits wait for the disk."""

import sqlite3

# What a loss of power may undo: a lease, after which the message is delivered again. It is on the
# disk with the next commit that waits.
NOT_AWAITED = frozenset({"claim_messages"})


class Durability:
    """Sets `synchronous` for the next statement of one connection."""

    def __init__(self, connection: sqlite3.Connection, synchronous: str) -> None:
        self.connection = connection
        self._usual = synchronous
        self._level: str | None = synchronous

    def prepare(self, statement: str) -> None:
        """Have a named statement wait, or not; inside a transaction it is too late for that."""
        level = "normal" if statement in NOT_AWAITED else self._usual
        if level != self._level and not self.connection.in_transaction:
            self._level = None  # an interruption must not leave us in the belief that it is set
            self.connection.execute(f"PRAGMA synchronous = {level}")
            self._level = level

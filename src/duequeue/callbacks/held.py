"""A message that a push process has leased."""

import asyncio
from hashlib import blake2b

from duequeue.leased import LeasedMessage
from duequeue.port.store import Claimed


class Held(LeasedMessage[bytes]):
    """A leased message, and the call that is under way for it."""

    __slots__ = ("call", "scheduled_at")

    def __init__(self, queue_name: str, claimed: Claimed, payload: bytes, lease_until: int) -> None:
        super().__init__(queue_name, claimed, payload, lease_until)
        self.scheduled_at = claimed.due_at
        self.call: asyncio.Task[None] | None = None

    def webhook_id(self, kind: str) -> str:
        """Return the id of this incarnation: the same over all attempts, another after an update.

        An update keeps the id of a row, so the id alone would make a receiver that remembers ids
        ignore the new content.
        """
        parts = (kind, self.key, str(self.lease.id), str(self.due_millis))
        digest = blake2b("\0".join(parts).encode() + b"\0" + self.payload, digest_size=16)
        return f"msg_{digest.hexdigest()}"

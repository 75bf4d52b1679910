"""What both kinds of delivery know about their message."""

from datetime import datetime
from typing import Any, Generic

from typing_extensions import TypeVar

from duequeue.headers import decode_headers
from duequeue.instants import from_millis, nearest_instant
from duequeue.port.store import Claimed, Lease

T = TypeVar("T", default=Any)


class LeasedMessage(Generic[T]):
    """A leased message, without the methods that settle it.

    `settled` becomes True when its holder begins to settle it, `lost` when a consumer learns that
    the lease is gone. `settled_within` says that the holder's own transaction may still undo that,
    and `in_doubt` that a call to settle it has begun and did not return, perhaps because it failed.
    `handler_began` is set if the history is to record how long the handler took.
    """

    __slots__ = (
        "_asked_at",
        "_expires_at",
        "_headers",
        "_lease_until",
        "attempt",
        "handler_began",
        "in_doubt",
        "key",
        "lease",
        "lost",
        "payload",
        "queue_name",
        "settled",
        "settled_within",
    )

    queue_name: str
    key: str
    payload: T
    attempt: int
    lease: Lease
    settled: bool
    settled_within: bool
    in_doubt: bool
    lost: bool
    handler_began: int | None

    def __init__(self, queue_name: str, claimed: Claimed, payload: T, lease_until: int) -> None:
        self.queue_name = queue_name
        self.lease, self.key, _, self._asked_at, self.attempt, self._headers, *_ = claimed
        self._expires_at = claimed.expires_at
        self.payload = payload
        self._lease_until = lease_until
        self.settled = False
        self.settled_within = False
        self.in_doubt = False
        self.lost = False
        self.handler_began = None

    @property
    def due_at(self) -> datetime:
        """The instant the producer asked for."""
        return from_millis(self._asked_at)

    @property
    def expires_at(self) -> datetime | None:
        """The instant from which the message is no longer delivered, if it has one."""
        return None if self._expires_at is None else nearest_instant(self._expires_at)

    @property
    def delivered_at(self) -> datetime:
        """The instant this lease began."""
        return from_millis(self.lease.delivered_at)

    @property
    def lease_until(self) -> datetime:
        """The instant this lease ends, as far as this process has extended it."""
        return from_millis(self._lease_until)

    @property
    def headers(self) -> dict[str, str]:
        """The headers that the producer sent beside the payload."""
        return decode_headers(self._headers, self.key)

    @property
    def redelivered(self) -> bool:
        """Whether the message was delivered before."""
        return self.attempt > 1

    @property
    def due_millis(self) -> int:
        """The instant the producer asked for, in milliseconds."""
        return self._asked_at

    @property
    def until_millis(self) -> int:
        """The instant this lease ends, in milliseconds."""
        return self._lease_until

    def lease_left(self, now: int) -> int:
        """Return how many milliseconds of the lease are left."""
        return self._lease_until - now

    def extended_to(self, until: int) -> None:
        """Remember the new end of the lease."""
        self._lease_until = until

    def handler_ended(self, now: int) -> None:
        """Note how long the handler took, for the history; only the first call counts."""
        if self.handler_began is not None:
            self.lease = self.lease._replace(handler_ms=max(0, now - self.handler_began))
            self.handler_began = None

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.key!r} of {self.queue_name!r}, "
            f"due {self.due_at.isoformat()}, attempt {self.attempt}>"
        )

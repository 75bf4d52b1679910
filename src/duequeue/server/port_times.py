"""The server's clock takes the place of its clients' in the operations of the port.

A client decides when messages are due and for how long it leases them, and nothing else about time.
"""

from typing import Any, NamedTuple

from duequeue.port.remote import Operation
from duequeue.port.store import Answer, Burial, Expiry, Lease, Release
from duequeue.server.port_arguments import FARTHEST

# These results are instants to wait for, which the client compares with its own clock.
_AWAITED = frozenset({"next_due", "earliest_due"})


class ClientTime(NamedTuple):
    """The present instant of the server, and by how much the clock of a client is ahead of it."""

    now: int
    lead: int = 0

    def ours(self, operation: Operation, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of a call by the server's clock.

        A lease or a response lasts as long as the client has asked for.
        """
        given = dict(zip(operation.signature.parameters, arguments, strict=True))
        if "now" in given:
            given["now"] = self.now
        if "until" in given:
            given["until"] = self._moved(given["until"])
        return tuple(map(self._settlement, given.values()))

    def theirs(self, name: str, result: Any) -> Any:
        """Return the result of an operation by the client's clock."""
        return result + self.lead if name in _AWAITED and result is not None else result

    def _settlement(self, value: Any) -> Any:
        if isinstance(value, list):
            return list(map(self._settlement, value))
        if isinstance(value, Lease):  # no message was delivered later than now
            return value._replace(delivered_at=min(value.delivered_at, self.now))
        if isinstance(value, Answer):
            value = value._replace(expires_at=self._moved(value.expires_at))
        if isinstance(value, Answer | Burial | Expiry | Release):
            return value._replace(lease=self._settlement(value.lease))
        return value

    def _moved(self, end: int) -> int:
        return max(-FARTHEST, min(end - self.lead, FARTHEST))


def client_time(
    operation: Operation, arguments: tuple[Any, ...], sent_at: int | None, now: int
) -> ClientTime:
    """Tell by how much a client's clock is ahead: from `now`, or else from when it sent a call."""
    given = dict(zip(operation.signature.parameters, arguments, strict=True))
    theirs = given.get("now", sent_at)
    return ClientTime(now, 0 if theirs is None else theirs - now)

"""How many connections may be open, in all and from one address."""

import logging
import resource
from collections import Counter
from ipaddress import IPv6Address, ip_address
from time import monotonic

from duequeue.server.early_answers import ClosingProtocol
from duequeue.server.limits import Limits
from duequeue.server.problems import Problem

# The other files that a process may open are for the database, callbacks and tokens.
SHARE_OF_FILES = 3 / 4
LOG_EVERY_SECONDS = 60.0

logger = logging.getLogger("duequeue.server")


class Connections:
    """Counts the open connections; both limits shrink if the process may open few files."""

    def __init__(self, limits: Limits) -> None:
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = limits.connections
        if files != resource.RLIM_INFINITY:
            self._most = max(1, min(self._most, int(files * SHARE_OF_FILES)))
        self._most_per_address = -(
            -limits.connections_per_address * self._most // limits.connections
        )
        self._open = 0
        self._by_address: Counter[str] = Counter()
        self._logged_at = -LOG_EVERY_SECONDS

    def enter(self, address: str) -> None:
        """Count a connection."""
        self._open += 1
        self._by_address[address] += 1

    def leave(self, address: str) -> None:
        """Count a connection no more."""
        self._open -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def check(self, address: str) -> None:
        """Raise if there are too many, and log that once in a while."""
        if self._open > self._most:
            words = f"{self._most} connections are open, as many as the limits or ulimit -n allow"
            status, detail = 503, "the server has too many connections; try again"
        elif address and self._by_address[address] > self._most_per_address:
            words = f"{self._most_per_address} connections from {address} are open"
            status, detail = 429, "too many connections come from this address; try again"
        else:
            return
        if monotonic() >= self._logged_at + LOG_EVERY_SECONDS:
            self._logged_at = monotonic()
            logger.warning("%s; others are refused", words)
        later = {b"retry-after": b"1"}
        raise Problem(status, "too-many-connections", detail, headers=later)


class CountedProtocol(ClosingProtocol):
    """HTTP/1.1 on a limited number of connections."""

    open = Connections(ClosingProtocol.limits)
    counted_as: str | None = None

    def connection_made(self, transport: object) -> None:
        """Refuse the connection if there are too many."""
        super().connection_made(transport)  # type: ignore[arg-type]
        if self.counted_as is not None:  # since before its handshake
            return
        self.counted_as = address_of(self.client)
        self.open.enter(self.counted_as)
        try:
            self.open.check(self.counted_as)
        except Problem as problem:
            self._refuse(problem)

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room for another connection."""
        if self.counted_as is not None:
            self.open.leave(self.counted_as)
            self.counted_as = None
        super().connection_lost(exc)


def address_of(client: tuple[str, int] | None) -> str:
    """Return what a client is counted under; one client has a whole network of IPv6 addresses."""
    if client is None:  # a Unix socket
        return ""
    address = ip_address(client[0].partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(IPv6Address(int(address) >> 64 << 64))
    return str(address)

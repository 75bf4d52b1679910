"""The responses of one kind of message in this process."""

from heapq import heapify, heappop, heappush
from typing import NamedTuple

from duequeue.port.store import StoredResponse

# An expiry stays in the heap after its response is gone. If more than so many do, and most of the
# heap, it is built anew.
_MOST_STALE = 100


class _Kept(NamedTuple):
    response: StoredResponse
    expires_at: int


class MemoryResponses:
    """The responses by key, and a heap of when they expire. The caller holds the lock."""

    def __init__(self) -> None:
        self._by_key: dict[str, _Kept] = {}
        self._expiries: list[tuple[int, str]] = []

    def put(self, key: str, response: StoredResponse, expires_at: int, now: int) -> None:
        """Store a response in place of an older one, and delete those that have expired."""
        self._by_key[key] = _Kept(response, expires_at)
        heappush(self._expiries, (expires_at, key))
        while self._expiries and self._expiries[0][0] <= now:
            expired_at, expired = heappop(self._expiries)
            kept = self._by_key.get(expired)
            if kept is not None and kept.expires_at == expired_at:
                del self._by_key[expired]
        if len(self._expiries) > 2 * len(self._by_key) + _MOST_STALE:
            self._expiries = [(kept.expires_at, key) for key, kept in self._by_key.items()]
            heapify(self._expiries)

    def find(self, key: str, now: int) -> StoredResponse | None:
        """Return the response of a key that has not expired."""
        kept = self._by_key.get(key)
        return kept.response if kept is not None and kept.expires_at > now else None

    def forget(self, key: str) -> None:
        """Delete the response of a key, if there is one."""
        self._by_key.pop(key, None)

    def clear(self) -> None:
        """Delete every response."""
        self._by_key.clear()
        self._expiries.clear()

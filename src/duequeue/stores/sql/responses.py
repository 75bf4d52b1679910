"""The responses of one kind of message in an SQL database."""

import threading
from collections.abc import Iterable, Sequence

from duequeue.port.alerts import Answered
from duequeue.port.store import ResponseLook, Steps, StoredResponse
from duequeue.stores.sql.commands import Execute, Query, QueryEach, Row
from duequeue.stores.sql.settling import BY_FUNCTION
from duequeue.stores.wakeup_note import Note

# Expired responses are deleted once for this many that are written, and at most twice as many at a
# time. So they cannot pile up, and nothing else has to look for them.
SWEEP_EVERY = 100


class SqlResponses:
    """Finds and forgets responses; see `port.store.Store`.

    A response is stored with the removal of its message, and no later offer deletes it. Instead, it
    does not count while a message with its key is in the queue, and a claim of that message deletes
    it before anybody can settle the message. So only queues with responses pay for them.
    """

    def __init__(self, kind_id: int, kind: str, *, by_function: bool = False) -> None:
        self._kind_id = kind_id
        self._kind = {"kind_id": kind_id}
        self._kind_name = kind
        self._look = f"find_response{BY_FUNCTION}" if by_function else "find_response"
        self._lock = threading.Lock()
        self._until_sweep = 0

    def find(self, key: str, now: int) -> Steps[ResponseLook]:
        """Look for the message and the response in one statement."""
        rows: list[Row] = yield Query(self._look, {**self._kind, "key": key, "now": now})
        if any(row[0] for row in rows):
            return ResponseLook(is_pending=True)
        found = StoredResponse(*rows[0][1:]) if rows else None
        return ResponseLook(is_pending=False, response=found)

    def forget(self, key: str, now: int) -> Steps[bool]:
        """Delete by key."""
        one = {**self._kind, "key": key, "now": now}
        forgotten: int = yield Execute("forget_response", one)
        return forgotten > 0

    def forget_old(self, rows: Sequence[Row]) -> Steps[None]:
        """Delete the responses to earlier messages, given by their keys and ids.

        This need not be part of the claim that found them. Until it is done, nobody has the token
        of the new lease, and if it fails, the next claim of the message finds them again.
        """
        yield QueryEach("forget_old_responses", self._kind, ("key", "id"), sorted(rows))

    def forget_all(self) -> Steps[None]:
        """Delete by kind."""
        yield Execute("forget_all_responses", self._kind)

    def make_room(self, number: int, now: int) -> Steps[None]:
        """Delete some of the expired responses now and then, before others are written."""
        with self._lock:
            self._until_sweep -= number
            if self._until_sweep > 0:
                return
            self._until_sweep = SWEEP_EVERY
        limit = 2 * max(number, SWEEP_EVERY)
        yield Execute("sweep_responses", {**self._kind, "now": now, "limit": limit})

    def notes(self, keys: Iterable[str], sender: str | None) -> list[QueryEach]:
        """Return the query that notifies other processes, if there is a sender."""
        if sender is None:
            return []
        notes = [(str(Note(sender, Answered(key), self._kind_name)),) for key in keys]
        return [QueryEach("notify_answered", {}, ("note",), notes)]

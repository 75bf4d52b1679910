"""How messages enter and leave the queue, each with a row of history or without; and responses."""

import threading
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from duequeue.port.alerts import Answered
from duequeue.port.fencing import new_token
from duequeue.port.history_table import day_of
from duequeue.port.store import (
    DROPPED,
    KEEP,
    Answer,
    Burial,
    Expiry,
    Lease,
    Record,
    ResponseLook,
    Steps,
    StoredResponse,
)
from duequeue.stores.mailbox import Note
from duequeue.stores.sql.catalogue import WITH_HISTORY
from duequeue.stores.sql.commands import Execute, QueriesInTurn, Query, QueryEach, Row
from duequeue.stores.sql.history_table import HistoryDays

LEASE = ("id", "token")
RESPONSE = (*LEASE, "payload", "reason", "expires_at")
HANDLED = (*LEASE, "delivered_at", "handler_ms")
HURRIED_LOCK_TIMEOUT = "50ms"
# The codes of PostgreSQL and of MariaDB for a row that fits no partition.
NO_SUCH_DAY = frozenset({"23514", 1526})
OFFERED = Record._fields
# The queries that offer for a role without rights on the table have names that end like this.
BY_FUNCTION = "_by_function"

KEY = attrgetter("key")

# Expired responses are deleted once for this many that are written, and at most twice as many at a
# time. So they cannot pile up, and nothing else has to look for them.
SWEEP_EVERY = 100


class Settling:
    """Settles messages of one kind, and adds them to the history if it is given `days`."""

    def __init__(
        self,
        kind_id: int,
        days: HistoryDays | None,
        *,
        borrowed: bool = False,
        by_function: bool = False,
    ) -> None:
        self._kind_id = kind_id
        self.by_function = by_function
        self._kind = {"kind_id": kind_id}
        self._days = days
        self._borrowed = borrowed
        self.keeps_history = days is not None
        self._ending = WITH_HISTORY if self.keeps_history else ""  # of the names of queries

    def borrowed(self) -> "Settling":
        """Return the same for a caller's transaction, whose end it does not see."""
        by_function = self.by_function
        return Settling(self._kind_id, self._days, borrowed=True, by_function=by_function)

    def prepare(self, now: int) -> Steps[None]:
        """Make room for the rows of today and tomorrow, unless the transaction is a caller's."""
        if self._days is not None and not self._borrowed:
            yield from self._days.make_room(day_of(now))

    def offer(
        self, runs: Sequence[Sequence[Record]], now: int, note: str | None, *, hurried: bool
    ) -> Steps[list[list[Row]]]:
        """Offer runs of distinct keys; return for each run what changed, and whether it is new."""
        name = "offer_messages" + self._ending
        if self.by_function:
            name += BY_FUNCTION
        parameters = {
            **self._kind,
            "now": now,
            "note": note,
            "lock_timeout": HURRIED_LOCK_TIMEOUT if hurried else None,
        }
        if len(runs) == 1:
            return [(yield from self.rows_of(QueryEach(name, parameters, OFFERED, runs[0]), now))]
        each = [QueryEach(name, parameters, OFFERED, run) for run in runs]
        replies: list[list[Row]] = yield from self.rows_of(QueriesInTurn(each), now)
        return replies

    def ack(self, leases: Sequence[Lease], now: int) -> Steps[list[Row]]:
        """Delete messages by id and token, and return the ids."""
        if self._days is None:
            return self.rows_of(QueryEach("remove_messages", {}, LEASE, pairs(leases)), now)
        return self.rows_of(self._removal(leases, now), now)

    def answer(
        self, answers: Sequence[Answer], now: int, notes: Sequence[QueryEach]
    ) -> Steps[list[Row]]:
        """Store responses to the messages that are held, delete these, and return the ids."""
        of_lease = {answer.lease: answer for answer in answers}
        leases = sorted(of_lease, key=KEY)
        each = [
            (*lease[:2], of_lease[lease].payload, None, of_lease[lease].expires_at)
            for lease in leases
        ]
        written = QueryEach("write_responses", {"now": now}, RESPONSE, each)
        return self._last_rows_of([*notes, written, self._removal(leases, now)], now)

    def bury(
        self, burials: Sequence[Burial], now: int, notes: Sequence[QueryEach]
    ) -> Steps[list[Row]]:
        """Copy messages to the buried ones, store why they have no response, and delete them."""
        parked = QueryEach(
            "park_messages",
            {"now": now},
            (*LEASE, "key", "attempts", "reason"),
            [(*lease[:2], lease.key, attempts, reason) for lease, attempts, reason, _ in burials],
        )
        refusals = [
            (*lease[:2], None, reason, now + keep)
            for lease, _, reason, keep in sorted(burials, key=lambda each: each.lease.key)
        ]
        refused = QueryEach("write_responses", {"now": now}, RESPONSE, refusals)
        removed = self._removal_of_parked(burials, now)
        return self._last_rows_of([*notes, parked, refused, removed], now)

    def expire(self, expiries: Sequence[Expiry], now: int) -> Steps[list[Row]]:
        """Delete the messages that have expired by id and token, and return the ids."""
        if self._days is None:
            leases = pairs(expiry.lease for expiry in expiries)
            return self.rows_of(QueryEach("remove_expired", {"now": now}, LEASE, leases), now)
        in_order = sorted(expiries, key=lambda expiry: expiry.lease.key)
        each = [(*lease[:2], None, None, attempts) for lease, attempts in in_order]
        return self.rows_of(_with_outcome("expired", each, now), now)

    def drop(self, key: str, now: int, notes: Sequence[QueryEach]) -> Steps[int]:
        """Delete a message by key, and count it; only the one that is refused is deleted."""
        one = {**self._kind, "now": now, "token": new_token()}
        refusal = {**one, "reason": DROPPED, "expires_at": now + KEEP}
        refused = QueryEach("refuse_messages", refusal, ("key",), [(key,)])
        dropped = QueryEach("drop_message" + self._ending, one, ("key",), [(key,)])
        return len((yield from self._last_rows_of([*notes, refused, dropped], now)))

    def drop_all(self, now: int) -> Steps[int]:
        """Delete all messages of the kind, and count them."""
        every = {**self._kind, "now": now}
        if self._days is None:
            return self._count_of(Execute("drop_messages", every))
        return self._sum_of(Query("drop_messages_with_history", every), now)

    def drop_ticks(self, keys: Sequence[str], now: int) -> Steps[list[Row]]:
        """Delete the messages of ticks by key."""
        name = "remove_tick_messages" + self._ending
        each = [(key,) for key in keys]
        return self.rows_of(QueryEach(name, {**self._kind, "now": now}, ("key",), each), now)

    def rows_of(self, query: object, now: int) -> Steps[list[Any]]:
        """Run a query command that may add rows to the history."""
        if self._days is not None:
            yield from self._make_sure_of(now)
        try:
            rows: list[Any] = yield query
        except Exception as error:
            if self._days is not None and _code_of(error) in NO_SUCH_DAY:
                self._days.forget()  # the next try creates the day again
            raise
        return rows

    def _removal(self, leases: Iterable[Lease], now: int) -> QueryEach:
        if self._days is None:
            return QueryEach("remove_messages", {}, LEASE, pairs(leases))
        distinct = [in_history(lease) for lease in sorted(set(leases), key=KEY)]
        return QueryEach("remove_messages_with_history", {"now": now}, HANDLED, distinct)

    def _removal_of_parked(self, burials: Sequence[Burial], now: int) -> QueryEach:
        if self._days is None:
            return self._removal([burial.lease for burial in burials], now)
        each = {burial.lease: (*in_history(burial.lease), burial.attempts) for burial in burials}
        return _with_outcome("buried", list(each.values()), now)

    def _last_rows_of(self, queries: Sequence[QueryEach], now: int) -> Steps[list[Row]]:
        """Run queries in one transaction, and return the rows of the last one."""
        replies: list[list[Row]] = yield from self.rows_of(QueriesInTurn(queries), now)
        return replies[-1]

    def _make_sure_of(self, now: int) -> Steps[None]:
        yield from self.prepare(now)
        today = day_of(now)
        if self._days is not None and today not in self._days:
            # This is a caller's transaction, which may be rolled back, and others wait for its end.
            # So only the day that is needed is created, and it is not remembered.
            yield Query("add_history_day", {"day": today})

    def _sum_of(self, query: Query, now: int) -> Steps[int]:
        rows = yield from self.rows_of(query, now)
        return sum(row[0] for row in rows)

    def _count_of(self, command: Execute) -> Steps[int]:
        count: int = yield command
        return count


def _with_outcome(outcome: str, each: Sequence[Row], now: int) -> QueryEach:
    parameters = {"now": now, "outcome": outcome}
    return QueryEach("remove_with_outcome", parameters, (*HANDLED, "attempts"), each)


def _code_of(error: Exception) -> object:
    """Return the code of a driver's error, which some drivers give as the first argument."""
    return getattr(error, "sqlstate", error.args[0] if error.args else None)


def in_history(lease: Lease) -> Row:
    """Return the values of a lease that a row of history is made of."""
    return (lease.id, lease.token, lease.delivered_at, lease.handler_ms)


def pairs(leases: Iterable[Lease]) -> list[Row]:
    """Return the id and token of each lease in key order, in which statements lock rows."""
    return [lease[:2] for lease in sorted(leases, key=KEY)]


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

"""The port: what a queue asks of a store.

A store does no I/O. Each operation is a generator of commands (see `drive/steps.py`), which the
store's session runs. Instants are epoch milliseconds, payloads are bytes, and a store serves one
kind of message, that is, one queue name with one payload type.
"""

from collections.abc import Callable, Generator, Sequence
from math import inf
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from duequeue import defaults
from duequeue.errors import InvalidType
from duequeue.instants import MILLISECOND
from duequeue.message import OfferOutcome
from duequeue.port.alerts import Alerts, OnAlert
from duequeue.port.burial_table import BurialTable, StoredBurial
from duequeue.port.cron_table import CronTable
from duequeue.port.history_table import HistoryTable, SettledRow
from duequeue.port.listing import Buckets, DueCounts, Selection

T = TypeVar("T")

Steps: TypeAlias = Generator[Any, Any, T]
Operation: TypeAlias = Callable[[], Steps[T]]

KEEP = defaults.KEEP // MILLISECOND
# What stands in place of a response after a drop.
DROPPED = "dropped"

# The sender of a wake-up from inside a caller's transaction. No process has this name, so every
# process reacts to it, this one included, because it cannot know when the caller commits.
ANONYMOUS_SENDER = "-"


class Record(NamedTuple):
    """A message to store."""

    key: str
    payload: bytes
    due_at: int
    headers: str | None = None
    replace: bool = True
    expires_at: int | None = None


class Lease(NamedTuple):
    """The proof of holding a message: its id, and the fencing token and instant of the claim.

    The key is there because a store that locks several rows locks them in the order of their keys.
    `handler_ms` is how long the handler took, for the history. It is set when the handler ends.
    """

    id: int
    token: int
    delivered_at: int
    key: str
    handler_ms: int | None = None


class Release(NamedTuple):
    """A leased message to release, and when it is due again."""

    lease: Lease
    due_at: int


class Burial(NamedTuple):
    """A leased message to bury, and why; for `keep`, the reason stands in place of a response."""

    lease: Lease
    attempts: int
    reason: str
    keep: int = KEEP


class Answer(NamedTuple):
    """The response to a leased message, to be stored until it expires."""

    lease: Lease
    payload: bytes
    expires_at: int


class StoredResponse(NamedTuple):
    """A response as the store keeps it; without a payload, there is the reason why it has none."""

    payload: bytes | None
    reason: str | None
    responded_at: int


class ResponseLook(NamedTuple):
    """The result of a look for a response; while the message is pending, there is none."""

    is_pending: bool
    response: StoredResponse | None = None


class Expiry(NamedTuple):
    """A leased message to remove because it has expired, and how often it was delivered."""

    lease: Lease
    attempts: int


class AgeLimits(NamedTuple):
    """The instants before which rows of the history and burials are too old, if any are."""

    history_before: int | None
    buried_before: int | None


class Extended(NamedTuple):
    """The ids of the leases that were extended, and of those that another transaction has locked.

    A busy one is still held, and its extension is worth another try. All others are lost.
    """

    won: set[int]
    busy: set[int]


class Claimed(NamedTuple):
    """A message that a claim has just leased."""

    lease: Lease
    key: str
    payload: bytes
    asked_at: int
    attempt: int
    headers: str | None
    due_at: int
    expires_at: int | None = None


class StoredMessage(NamedTuple):
    """A live message as the store keeps it."""

    payload: bytes
    asked_at: int
    due_at: int
    leased_until: int
    attempts: int
    headers: str | None
    expires_at: int | None = None


class ListedMessage(NamedTuple):
    """A live message in a listing; `id` is its place among those due at the same instant."""

    id: int
    key: str
    message: StoredMessage


class Counts(NamedTuple):
    """How many messages are in which state; an instant is None if no message has one."""

    due: int
    leased: int
    future: int
    buried: int
    oldest_due_at: int | None
    next_due_at: int | None


class Store(Protocol):
    """Every operation on the messages of one kind.

    The operations that settle messages return the ids of those that were still held. A store that
    was opened with history records each message that leaves the queue, in the same transaction.
    """

    def offer(
        self,
        records: Sequence[Record],
        now: int,
        *,
        sender: str | None = None,
        hurried: bool = False,
    ) -> Steps[list[OfferOutcome]]:
        """Create, update or ignore each record, in order, all in one transaction.

        With a sender, the commit also notifies other processes of what changed. A hurried offer
        fails soon instead of waiting for a row that another transaction has locked.
        """

    def claim(self, limit: int, now: int, until: int, token: int) -> Steps[list[Claimed]]:
        """Lease up to `limit` due messages, earliest due first; empty only if none is claimable.

        The token of each lease is this one plus the leases that the message lost before, as
        `fencing.token_after` computes it. `give_back` keeps that number.
        """

    def claim_expired(self, limit: int, now: int, until: int, token: int) -> Steps[list[Expiry]]:
        """Lease the expired messages among the `limit` that are due first, to remove them."""

    def expire(self, expiries: Sequence[Expiry], now: int) -> Steps[set[int]]:
        """Delete the messages that are still held and have expired by `now`."""

    def ack(self, leases: Sequence[Lease], now: int) -> Steps[set[int]]:
        """Delete the messages that are still held."""

    def answer(
        self, answers: Sequence[Answer], now: int, *, sender: str | None = None
    ) -> Steps[set[int]]:
        """Delete the messages that are still held, and store the responses to them.

        With a sender, the commit also notifies other processes, here and in `bury` and `drop`.
        A response is gone for good as soon as a new message with its key is created. Expired ones
        are deleted now and then, a few at a time.
        """

    def response(self, key: str, now: int) -> Steps[ResponseLook]:
        """Look for the response of a key that has not expired, and for its message."""

    def forget_response(self, key: str, now: int) -> Steps[bool]:
        """Delete the response of a key, and return whether there was one."""

    def extend(self, leases: Sequence[Lease], until: int) -> Steps[Extended]:
        """Move the end of the leases that are still held, without waiting for locked rows."""

    def release(self, releases: Sequence[Release]) -> Steps[set[int]]:
        """Release the messages that are still held, each for its own due time."""

    def give_back(self, leases: Sequence[Lease]) -> Steps[set[int]]:
        """Undo the claims that still hold, as if the messages had never been delivered."""

    def bury(
        self, burials: Sequence[Burial], now: int, *, sender: str | None = None
    ) -> Steps[set[int]]:
        """Bury the messages that are still held, and store the reasons in place of responses."""

    def read(self, key: str) -> Steps[StoredMessage | StoredBurial | None]:
        """Return the live message of a key, else its newest burial."""

    def listed(self, selection: Selection, now: int) -> Steps[list[ListedMessage]]:
        """Return the selected live messages, in due order, without waiting for any lock."""

    def reschedule(self, key: str, due_at: int, now: int) -> Steps[bool]:
        """Give a live message another due time, as if it was offered so, and revoke its lease.

        Everything else about it stays. A message that expires by then is left as it is.
        """

    def drop(self, key: str, now: int, *, sender: str | None = None) -> Steps[bool]:
        """Delete a live message, leased or not, and store `DROPPED` in place of a response."""

    def drop_all(self, now: int) -> Steps[int]:
        """Delete every live message, and every response."""

    def counts(self, now: int) -> Steps[Counts]:
        """Count the messages by state."""

    def forecast(self, now: int, buckets: Buckets) -> Steps[DueCounts]:
        """Count the free messages that are due, and by bucket those due later, up to the end.

        A message can be both leased and due later only if a clock was set back. Whether such a
        message counts is up to the store.
        """

    def next_due(self, now: int) -> Steps[int | None]:
        """Return the due time of the next message that is not due yet."""

    def earliest_due(self, now: int) -> Steps[int | None]:
        """Return the earliest due time, past or future, of the messages that nobody holds."""

    def delete_old(self, limits: AgeLimits, limit: int) -> Steps[bool]:
        """Delete up to `limit` old rows of the history, and burials; return whether more are left.

        A day of the history that holds nothing else may be removed as a whole instead.
        """

    def settled(self, limit: int, key: str | None = None) -> Steps[list[SettledRow]]:
        """Return rows of the history, of one key if it is given, newest first."""

    def prepare_history(self, now: int) -> Steps[None]:
        """Make room for the rows of today and tomorrow, if this store keeps a history."""

    def announce(self, due_at: int) -> None:
        """Note that a message was just committed for `due_at`, perhaps by another process."""

    def notify(self, due_at: int) -> Steps[None]:
        """Notify other processes of `due_at` when the current transaction commits."""

    @property
    def burials(self) -> BurialTable:
        """The buried messages of this kind."""

    @property
    def cron(self) -> CronTable:
        """The cron table of this kind of message."""


class NoUpkeep:
    """What a store inherits that has nothing to prepare, and nothing to note."""

    def prepare_history(self, now: int) -> Steps[None]:  # noqa: ARG002 - the default of the port
        """Do nothing."""
        yield from ()

    def announce(self, due_at: int) -> None:
        """Do nothing."""


# A call that may touch every message has this many seconds. Such a long operation is ended sooner
# only if the store answers nobody any more.
LONGEST_CALL = 600.0


class Session(Protocol):
    """Runs operations, blocking. The driver's errors are raised as our own `StoreError`s."""

    def run(self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False) -> T:
        """Run one operation on one connection, in one transaction if it begins one.

        If that takes longer than `seconds`, raise `StoreUnavailable`; what the operation did may
        then have taken effect or not. From `LONGEST_CALL` on, it is a long operation. An operation
        that consumes messages, that is, polls, extends or settles, must not wait until offers have
        given back their connections.
        """

    def close(self) -> None:
        """Give every connection back."""


class AsyncSession(Protocol):
    """Runs operations, awaiting."""

    async def run(
        self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False
    ) -> T:
        """Run one operation on one connection; see `Session.run`."""

    async def close(self) -> None:
        """Give every connection back."""


class Backend(Protocol):
    """A database that a URL names: how to reach it, and how to open a store in it.

    A backend inherits from this class what it need not do.
    """

    # Why a caller's connection is refused, if it is.
    no_transactions: str = "because this store has no transactions of a caller"

    @property
    def address(self) -> str:
        """Where it is, for people to read, without secrets."""

    @property
    def place(self) -> str:
        """A name that is equal for all backends of this process that use the same tables."""
        return self.address

    def session(self) -> Session:
        """Return a blocking session; it connects when it is first used."""

    def async_session(self) -> AsyncSession:
        """Return an awaiting session; it connects when it is first used."""

    def read_only_session(self) -> Session:
        """Return a blocking session for `kinds`, which creates and changes nothing."""
        return self.session()

    def reading_session(self, at_once: int, seconds: float) -> AsyncSession:  # noqa: ARG002 - the default limits nothing
        """Return a session for so many reads at once, on connections apart from all other calls.

        The database ends each read after some seconds, if it can.
        """
        return self.async_session()

    def borrow(self, connection: object, session: Any, store: Any) -> tuple[Any, Store]:  # noqa: ARG002 - the default refuses
        """Return a session and a store inside a caller's transaction, whose end they do not see.

        They are given the queue's own, and the session awaits if that one does.
        """
        name = type(connection).__name__  # and not its text, which may hold a password
        raise InvalidType("connection", f"{name} cannot be used, {self.no_transactions}")

    def migrate(self) -> Steps[list[str]]:
        """Bring the tables up to date and name what was applied."""
        yield from ()
        return []

    def schema_script(self) -> str:
        """Return the statements that create the tables."""
        return ""

    def roles_script(self) -> str:
        """Return the statements that create roles for producers, consumers and administrators.

        It is empty if the database has no logins with different rights.
        """
        return ""

    def alerts(self, session: Any, kind: str, on_alert: OnAlert) -> Alerts:  # noqa: ARG002 - the default wakes nobody
        """Return the wake-ups of the queue to which a session belongs."""
        return Alerts()

    def open_store(
        self, kind: str, sweep_interval: int, *, migrate: bool, history: bool
    ) -> Steps[Store]:
        """Open the store of one kind of message."""

    def count_types(self, name: str, most: int) -> Steps[dict[str, int]]:
        """Return the payload types of a queue name with their live messages, at most `most` each.

        Return nothing if there is only one type, as nearly always. This is at most one statement.
        """

    def open_history(self, *, migrate: bool) -> Steps[HistoryTable]:
        """Open the history of all kinds."""

    def kinds(self) -> Steps[list[str]]:
        """Return every kind of message that the database knows; raise if it has no tables."""

"""The port: what a queue asks of a store.

A store does no I/O. Each operation is a generator of commands (see `drive/steps.py`), run by the
store's session. Instants are epoch milliseconds, payloads are bytes, and a store serves one
kind of message: one queue name with one payload type.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from duequeue.message import OfferOutcome
from duequeue.port.alerts import Alerts, OnAlert
from duequeue.port.cron_table import CronTable
from duequeue.port.history_table import HistoryTable, SettledRow

T = TypeVar("T")

Steps: TypeAlias = Generator[Any, Any, T]
Operation: TypeAlias = Callable[[], Steps[T]]

# Who tells everybody, the own process included: it cannot know when the caller commits.
NOBODY = "-"


class Record(NamedTuple):
    """A message to store."""

    key: str
    payload: bytes
    due_at: int
    headers: str | None = None
    replace: bool = True


class Lease(NamedTuple):
    """The proof that a message is held: its id, the fencing token of this very claim, and when."""

    id: int
    token: int
    delivered_at: int


class Release(NamedTuple):
    """A leased message to give back, and when it is due again."""

    lease: Lease
    due_at: int


class Burial(NamedTuple):
    """A leased message to park, and why."""

    lease: Lease
    attempts: int
    reason: str


class Claimed(NamedTuple):
    """A message that a claim has just leased."""

    lease: Lease
    key: str
    payload: bytes
    asked_at: int
    attempt: int
    headers: str | None


class StoredMessage(NamedTuple):
    """A live message as it lies in the store."""

    payload: bytes
    asked_at: int
    due_at: int
    leased_until: int
    attempts: int
    headers: str | None


class StoredBurial(NamedTuple):
    """A parked message as it lies in the store."""

    key: str
    payload: bytes
    asked_at: int
    attempts: int
    reason: str
    buried_at: int
    headers: str | None


class Counts(NamedTuple):
    """How many messages are in which state; the instants are None when there is none."""

    due: int
    leased: int
    future: int
    buried: int
    oldest_due_at: int | None
    next_due_at: int | None


class Store(Protocol):
    """Every operation on the messages of one kind. Settling returns the ids that were won.

    A store that was opened with history keeps a row of each message that leaves the queue, in the
    transaction in which it does.
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

        With a sender, what changed is told to other processes by the same commit. Hurried, it
        fails soon instead of waiting for a row that somebody else's transaction holds.
        """

    def claim(self, limit: int, now: int, until: int, token: int) -> Steps[list[Claimed]]:
        """Lease up to `limit` due messages, earliest due first; empty only if none is claimable."""

    def ack(self, leases: Sequence[Lease], now: int) -> Steps[set[int]]:
        """Delete what is still held."""

    def extend(self, leases: Sequence[Lease], until: int) -> Steps[set[int]]:
        """Move the end of the leases that are still held."""

    def release(self, releases: Sequence[Release]) -> Steps[set[int]]:
        """Give back what is still held, each for its own due time."""

    def give_back(self, leases: Sequence[Lease]) -> Steps[set[int]]:
        """Undo the claim of what is still held, as if it had never been delivered."""

    def bury(self, burials: Sequence[Burial], now: int) -> Steps[set[int]]:
        """Park what is still held."""

    def read(self, key: str) -> Steps[StoredMessage | StoredBurial | None]:
        """Return the live message of a key, else its newest burial."""

    def drop(self, key: str, now: int) -> Steps[bool]:
        """Delete a live message, leased or not."""

    def drop_all(self, now: int) -> Steps[int]:
        """Delete every live message."""

    def counts(self, now: int) -> Steps[Counts]:
        """Count the messages by state."""

    def next_due(self, now: int) -> Steps[int | None]:
        """Return when the next message that is not due yet will be."""

    def earliest_due(self, now: int) -> Steps[int | None]:
        """Return when the first message that nobody holds is, or was, due."""

    def buried(self, limit: int) -> Steps[list[StoredBurial]]:
        """Return burials, oldest first."""

    def revive(self, key: str, due_at: int, now: int) -> Steps[bool]:
        """Put the newest burial of a key back, unless the key is live."""

    def purge_buried(self, before: int) -> Steps[int]:
        """Forget the burials older than `before`."""

    def settled(self, limit: int) -> Steps[list[SettledRow]]:
        """Return what the history holds, newest first."""

    def prepare_history(self, now: int) -> Steps[None]:
        """Make room for rows, if this store keeps a history."""

    def announce(self, due_at: int) -> None:
        """Take note that a message was just committed for `due_at`."""

    def notify(self, due_at: int) -> Steps[None]:
        """Have other processes told once the transaction at hand commits."""

    @property
    def cron(self) -> CronTable:
        """What the crons of this kind of message know."""

    def borrowed(self) -> "Store":
        """Return the same store for a transaction whose end it will not learn of."""


class Session(Protocol):
    """Runs operations, blocking. Errors come out as `StoreError` and `StoreUnavailable`."""

    def run(self, operation: Operation[T]) -> T:
        """Run one operation on one connection, in one transaction if it begins one."""

    def close(self) -> None:
        """Give every connection back."""


class AsyncSession(Protocol):
    """Runs operations, awaiting."""

    async def run(self, operation: Operation[T]) -> T:
        """Run one operation on one connection, in one transaction if it begins one."""

    async def close(self) -> None:
        """Give every connection back."""


class Backend(Protocol):
    """A database that a URL names: how to reach it, and how to get a store in it ready."""

    @property
    def address(self) -> str:
        """Where it is, for people to read: without secrets."""

    @property
    def place(self) -> str:
        """Equal for all in this process who use the same tables."""

    def session(self) -> Session:
        """Return a blocking session; it connects when it is first used."""

    def async_session(self) -> AsyncSession:
        """Return an awaiting session; it connects when it is first used."""

    def borrow(self, connection: object) -> Session:
        """Return a session inside a caller's transaction."""

    def borrow_async(self, connection: object) -> AsyncSession:
        """Return an awaiting session inside a caller's transaction."""

    def migrate(self) -> Steps[list[str]]:
        """Bring the tables up to date and name what was applied."""

    def schema_script(self) -> str:
        """Return the statements that create the tables."""

    def alerts(self, kind: str, on_alert: OnAlert) -> Alerts:
        """Return the line to other processes."""

    def open_store(
        self, kind: str, sweep_interval: int, *, migrate: bool, history: bool
    ) -> Steps[Store]:
        """Get the store of one kind of message ready."""

    def open_history(self, *, migrate: bool) -> Steps[HistoryTable]:
        """Get the history of all kinds ready."""

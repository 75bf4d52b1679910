"""`redis://user:password@host:port/db`, and the other ways to name a Redis or Valkey."""

from duequeue.drive.steps import at_once
from duequeue.errors import SchemaError, StoreError
from duequeue.port.alerts import Alerts, OnAlert
from duequeue.port.examining import Finding
from duequeue.port.store import AsyncSession, Backend, Session, Steps
from duequeue.stores.redis.commands import Caller, Script
from duequeue.stores.redis.connections import examining
from duequeue.stores.redis.connections.alerts import RedisAlerts, shared_mailboxes
from duequeue.stores.redis.connections.examining import check_server
from duequeue.stores.redis.connections.session import RedisSession
from duequeue.stores.redis.connections.session_async import AsyncRedisSession
from duequeue.stores.redis.history_table import RedisHistoryTable
from duequeue.stores.redis.keys import KINDS, LAYOUT, QueueKeys, shards_of
from duequeue.stores.redis.scripts import code
from duequeue.stores.redis.store import RedisStore
from duequeue.stores.redis_client.settings import RedisSettings, Way
from duequeue.stores.sharded import ShardedStore


class RedisBackend(Backend):
    """One database of one server; see `port.store.Backend`."""

    no_transactions = (
        "because Redis has no transactions of a caller; offer after your own commit, or keep the "
        "queue in the database of your transaction"
    )

    def __init__(self, url: str) -> None:
        self._settings = RedisSettings.from_url(url)
        self._mailbox = shared_mailboxes.get(self.place)

    @property
    def address(self) -> str:
        """Host, port and database."""
        return self._settings.address

    @property
    def place(self) -> str:
        """The address, with how it is reached."""
        return self._settings.place

    def session(self) -> Session:
        """Use the connections that this process shares."""
        return RedisSession(self._settings)

    def async_session(self) -> AsyncSession:
        """Use the connection that this event loop shares."""
        return AsyncRedisSession(self._settings)

    def alerts(self, session: object, kind: str, on_alert: OnAlert) -> Alerts:  # noqa: ARG002 - the mailbox knows the server
        """Use PUBLISH and SUBSCRIBE."""
        return RedisAlerts(self._settings, kind, on_alert)

    def open_store(
        self,
        kind: str,
        sweep_interval: int,  # noqa: ARG002 - the port's signature
        *,
        migrate: bool,  # noqa: ARG002 - the port's signature
        history: bool,
    ) -> Steps[RedisStore | ShardedStore]:
        """Add the kind to the kinds of the database, if its server keeps its data."""
        if self._settings.shards > 1 and not history:
            callers, number = yield from open_shards(self._settings, kind)
            return ShardedStore([RedisStore(each, number, self._mailbox) for each in callers])
        caller, number = yield from open_kind(self._settings, kind, history=history)
        return RedisStore(caller, number, self._mailbox)

    def count_types(self, name: str, most: int) -> Steps[dict[str, int]]:
        """Ask for the kinds, and for the sizes of those with this name if there are several."""
        kinds = [kind for kind in (yield from self.kinds()) if kind.startswith(f"{name}|")]
        types: dict[str, int] = {}
        for kind in kinds if len(kinds) > 1 else ():
            live = 0
            for keys in shards_of(kind, self._settings.shards):
                live += yield Caller(keys).script("count_live")
            types[kind.partition("|")[2]] = min(live, most)
        return types

    @at_once
    def open_history(self, *, migrate: bool) -> RedisHistoryTable:  # noqa: ARG002 - the port's signature
        """Return the history of all kinds."""
        return RedisHistoryTable(self.kinds)

    def kinds(self) -> Steps[list[str]]:
        """Read the hash of kinds."""
        return sorted([kind.decode() for kind in (yield Script(code("kinds"), [KINDS], ()))])

    def examine(self, now: int) -> Steps[list[Finding]]:
        """Examine the servers that have the queues."""
        return examining.examine(self._settings, self.kinds, now)


def open_kind(settings: RedisSettings, kind: str, *, history: bool) -> Steps[tuple[Caller, int]]:
    """Return what calls the scripts of a kind, and its number."""
    if history and (settings.way is Way.CLUSTER or settings.shards > 1):
        where = "on a cluster" if settings.way is Way.CLUSTER else "with shards in the url"
        raise StoreError(
            f"history=True is not possible {where}, because the rows of all queues are numbered "
            "together; open the queue without it, or on one server without shards"
        )
    caller = Caller(QueueKeys(kind, keeps_history=history))
    yield from check_server(settings, caller)
    if settings.shards > 1 and settings.way is Way.CLUSTER:
        for keys in shards_of(kind, settings.shards):
            yield from check_server(settings, Caller(keys))
    yield from _check_shards(settings, caller)
    number, layout = yield Script(code("open"), [KINDS], (kind, LAYOUT))
    if layout != LAYOUT:
        raise SchemaError(
            f"Redis at {settings.address} has its keys in layout {layout}, but this DueQueue knows "
            f"only layout {LAYOUT}: use the version of DueQueue that wrote them"
        )
    return caller, number


def open_shards(settings: RedisSettings, kind: str) -> Steps[tuple[list[Caller], int]]:
    """Do the same for a queue that is divided into shards."""
    _, number = yield from open_kind(settings, kind, history=False)
    return [Caller(keys) for keys in shards_of(kind, settings.shards)], number


def _check_shards(settings: RedisSettings, caller: Caller) -> Steps[None]:
    """Raise if the queue was divided otherwise, because then messages would not be found."""
    shards: int = yield caller.script("open_shards", (settings.shards,))
    if shards != settings.shards:
        raise StoreError(
            f"the queue {caller.kind.partition('|')[0]!r} is divided into {shards} shards, but the "
            f"url says {settings.shards}; to change that, move its messages to another queue"
        )

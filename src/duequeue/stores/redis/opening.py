"""Opens a kind of message: checks its server, and adds it to the kinds of the database."""

from duequeue.errors import SchemaError, StoreError
from duequeue.port.store import Steps
from duequeue.stores.redis.calling import Caller
from duequeue.stores.redis.checks import check_server
from duequeue.stores.redis.commands import Script
from duequeue.stores.redis.keys import KINDS, LAYOUT, QueueKeys
from duequeue.stores.redis.scripts import code
from duequeue.stores.redis.shards import shards_of
from duequeue.stores.redis_client.settings import RedisSettings, Way


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

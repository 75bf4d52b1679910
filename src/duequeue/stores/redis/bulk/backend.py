"""Redis for whole batches, which are written and read a thousand messages at a time."""

from duequeue.errors import InvalidArgument
from duequeue.port.bulk import Snapshots
from duequeue.port.store import Session, Steps
from duequeue.stores.redis.bulk.offers import RedisStage
from duequeue.stores.redis.bulk.snapshots import RedisSnapshots
from duequeue.stores.redis.bulk.streams import RedisStreams
from duequeue.stores.redis.calling import Caller
from duequeue.stores.redis.mailbox import shared_mailboxes
from duequeue.stores.redis.opening import open_kind
from duequeue.stores.redis.session import RedisSession
from duequeue.stores.redis.store import RedisStore
from duequeue.stores.redis_client.settings import RedisSettings


class RedisBulk(RedisStage, RedisStreams):
    """Batches of one kind; see `port.bulk.BulkStore`."""

    def __init__(self, caller: Caller, kind_id: int, messages: RedisStore) -> None:
        self.kind_id = kind_id
        self.notify = messages.notify
        self.counts = messages.counts
        RedisStage.__init__(self, caller, messages)
        RedisStreams.__init__(self, caller, messages)


class BulkRedisBackend:
    """One Redis; see `port.bulk.BulkBackend`."""

    is_pooled = False

    def __init__(self, url: str) -> None:
        self._settings = RedisSettings.from_url(url)
        if self._settings.shards > 1:
            raise InvalidArgument(
                "url", "has shards, but a queue that is divided into shards takes no whole batches"
            )
        self._mailbox = shared_mailboxes.get(self._settings.place)

    def bulk_session(self) -> Session:
        """Use the connections that this process shares."""
        return RedisSession(self._settings)

    def open_bulk(self, kind: str, *, migrate: bool, history: bool) -> Steps[RedisBulk]:  # noqa: ARG002 - there is no schema
        """Open the bulk store of one kind."""
        caller, number = yield from open_kind(self._settings, kind, history=history)
        return RedisBulk(caller, number, RedisStore(caller, number, self._mailbox))

    def snapshots(self, kind_id: int) -> Snapshots:
        """Read the hash of messages."""
        return RedisSnapshots(self._settings, kind_id)

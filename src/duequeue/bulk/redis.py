"""Redis for whole batches, which are written and read a thousand messages at a time.

Nothing here takes more than a thousand messages in one script, because nobody else is served while
a script runs. So a batch is not one transaction: it becomes visible a thousand messages at a time,
and a batch that was interrupted continues where it stopped when it is tried again.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import chain

import pyarrow as pa

from duequeue.bulk.port import (
    STALE_AFTER,
    UNKNOWN,
    OfferCounts,
    Snapshots,
    StageId,
    StreamCounts,
    Written,
    name_is_taken,
)
from duequeue.bulk.redis_snapshots import RedisSnapshots
from duequeue.bulk.redis_streams import RedisStreams
from duequeue.errors import InvalidArgument, StoreError
from duequeue.message import OfferOutcome
from duequeue.port.store import Record, Session, Steps
from duequeue.stores.redis.backend import open_kind
from duequeue.stores.redis.commands import MOST_AT_ONCE, MOST_BYTES, Caller, Word, record_words
from duequeue.stores.redis.connections.alerts import shared_mailboxes
from duequeue.stores.redis.connections.session import RedisSession
from duequeue.stores.redis.scripts import add_scripts
from duequeue.stores.redis.store import RedisStore
from duequeue.stores.redis_client.settings import RedisSettings

CHUNK_BYTES = 8 * 1024 * 1024

add_scripts(files(__package__).joinpath("redis.lua").read_text("utf-8"))


def records_of(rows: pa.RecordBatch) -> Iterator[list[Record]]:
    """Return the rows of a batch in chunks that one script takes."""
    names = ("key", "payload", "due_at", "headers", "replace")
    columns = [rows[name].to_pylist() for name in names]
    chunk: list[Record] = []
    size = 0
    for fields in zip(*columns, strict=True):
        record = Record(*fields)
        size += len(record.payload)
        if len(chunk) == MOST_AT_ONCE or (chunk and size > CHUNK_BYTES):
            yield chunk
            chunk, size = [], len(record.payload)
        chunk.append(record)
    if chunk:
        yield chunk


def words_of(records: list[Record]) -> Iterator[Word]:
    """Return records as a script takes them."""
    return chain.from_iterable(map(record_words, records))


class RedisStage:
    """The staged and the offered batches of one kind; see `bulk.port.BulkStore`."""

    def __init__(self, caller: Caller, messages: RedisStore) -> None:
        self._caller = caller
        self._messages = messages

    def ingest(
        self, rows: pa.RecordBatch, now: int, *, expect_new: bool
    ) -> Steps[tuple[OfferCounts, bool]]:
        """Offer the batch, a thousand rows in each script."""
        outcomes: list[OfferOutcome] = []
        for records in records_of(rows):
            outcomes += yield from self._messages.offer(records, now)
        counts = OfferCounts(*(outcomes.count(each) for each in OUTCOMES))
        return counts, expect_new and counts.created == rows.num_rows

    def take_write_place(self, most: int) -> Steps[bool]:  # noqa: ARG002 - the port's signature
        """Return True, because scripts run one after the other anyway."""
        yield from ()
        return True

    def stage(self, rows: pa.RecordBatch, stage: StageId, part: int) -> Steps[None]:
        """Append rows to the stage; those of an earlier try are left as they are."""
        first = 0
        for records in records_of(rows):
            words = (stage.batch, part, first, *words_of(records))
            yield self._caller.script("bulk/stage", words, own=self._stage(stage, part))
            first += len(records)

    def discard(self, stage: StageId, parts: Sequence[int]) -> Steps[None]:
        """Delete parts from the stage, unless a merge has begun to offer them."""
        for part in parts:
            yield self._caller.script("bulk/discard", (part,), own=self._stage(stage, part))

    def merge(
        self,
        app: str,
        stage: StageId,
        parts: Mapping[int, int],
        now: int,
        doubles: int = 0,
        written: Written = UNKNOWN,
    ) -> Steps[OfferCounts | None]:
        """Choose among rows with the same key, then offer what was chosen.

        Each script takes the rows that it offers away from the stage and counts them, so a try
        that was interrupted goes on where it stopped. It goes on with the parts that it began
        with, because some of their rows are offered already. Spark may have staged them again.
        """
        commit = {"commit": self._caller.keys.named(f"commit:{app}"), **self._stage(stage)}
        known = [number for item in parts.items() for number in item]
        by = ["" if each is None else each for each in written]
        words = (stage.batch, *by, *known)
        state = yield self._caller.script("bulk/open_commit", words, own=commit)
        if state == b"merged":
            yield from self._empty(stage)
            return None
        _check(state, app, stage.batch)
        if state == b"new":
            yield from self._choose(stage, parts)
            words = (stage.batch, now, doubles, *by, *sorted(parts))
            yield self._caller.script("bulk/begin_commit", words, own=commit)
        for part in map(int, (yield self._caller.script("bulk/merging", own=commit))):
            own = {**commit, **self._stage(stage, part)}
            while (yield self._caller.script("bulk/merge", (part, now, MOST_BYTES), now, own)):
                pass
        counts = yield self._caller.script("bulk/close_commit", own=commit)
        yield from self._empty(stage)
        return OfferCounts(*map(int, counts))

    def record(self, app: str, counts: OfferCounts, now: int) -> Steps[None]:
        """Store the counts, and delete those that nobody has asked for."""
        text = " ".join(map(str, counts))
        yield self._caller.script("bulk/record", (app, text, now, now - STALE_AFTER))

    def take_record(self, app: str) -> Steps[OfferCounts | None]:
        """Delete the counts and return them."""
        found: bytes | None = yield self._caller.script("bulk/take_record", (app,))
        return None if found is None else OfferCounts(*map(int, found.split()[1:]))

    def stream_counts(self, app: str) -> Steps[StreamCounts | None]:
        """Read the commit."""
        commit = {"commit": self._caller.keys.named(f"commit:{app}")}
        batch, *counts = yield self._caller.script("bulk/find_commit", own=commit)
        if batch is None:
            return None
        return StreamCounts(int(batch), OfferCounts(*(int(each or 0) for each in counts)))

    def _choose(self, stage: StageId, parts: Mapping[int, int]) -> Steps[None]:
        """Note which row of each key counts, if there are several parts that may have it."""
        if len(parts) < 2:  # noqa: PLR2004 - within one part, each key is there once
            return
        for part in sorted(parts):
            own = self._stage(stage, part)
            for first in range(0, parts[part], MOST_AT_ONCE):
                yield self._caller.script("bulk/choose", (part, first), own=own)

    def _empty(self, stage: StageId) -> Steps[None]:
        """Delete what is left of a batch, and of those before it that were given up."""
        stages = yield self._caller.script("bulk/stages", own=self._stage(stage))
        for batch in map(int, stages):
            if batch <= stage.batch:
                old = StageId(stage.writer, batch)
                parts = yield self._caller.script("bulk/end_merge", own=self._stage(old))
                yield from self.discard(old, [int(part) for part in parts])
                yield self._caller.script("bulk/forget_stage", (batch,), own=self._stage(old))

    def _stage(self, stage: StageId, part: int | None = None) -> dict[str, bytes]:
        """Return the keys of a batch of the stage, and of a part of it."""
        named = self._caller.keys.named
        base = f"stage:{stage.writer}:{stage.batch}"
        return {
            "stages": named(f"stages:{stage.writer}"),
            "stage_parts": named(base),
            "chosen": named(f"{base}:chosen"),
            "merging": named(f"{base}:merging"),
            "staged": named(f"{base}:{part}"),
            "staged_keys": named(f"{base}:{part}:keys"),
        }


# In the order of `OfferCounts`.
OUTCOMES = (OfferOutcome.CREATED, OfferOutcome.UPDATED, OfferOutcome.IGNORED)


def _check(state: bytes | int, app: str, batch: int) -> None:
    if isinstance(state, int):
        raise name_is_taken(app, f"batch {state}, and this is batch {batch}")
    if state == b"other":
        raise name_is_taken(app, f"another batch {batch}, with other rows")
    if state == b"missing":
        raise StoreError(
            f"batch {batch} of {app!r} is no longer staged as it was written; the server must have "
            "crashed in between, so run the batch again"
        )


class RedisBulk(RedisStage, RedisStreams):
    """Batches of one kind; see `bulk.port.BulkStore`."""

    def __init__(self, caller: Caller, kind_id: int, messages: RedisStore) -> None:
        self.kind_id = kind_id
        self.notify = messages.notify
        self.counts = messages.counts
        RedisStage.__init__(self, caller, messages)
        RedisStreams.__init__(self, caller, messages)


class BulkRedisBackend:
    """One Redis; see `bulk.port.BulkBackend`."""

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

"""Micro-batches that are delivered: leased, extended and acked a thousand messages at a time."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from duequeue.bulk.port import (
    PAGE_BYTES,
    Backlog,
    BatchId,
    MessageRow,
    Reach,
    StreamBatch,
    token_of,
)
from duequeue.port.store import Burial, Release, Steps
from duequeue.stores.redis.commands import MOST_AT_ONCE, MOST_BYTES, Caller, Word
from duequeue.stores.redis.packing import stored
from duequeue.stores.redis.store import RedisStore


class Known(NamedTuple):
    """The record of a micro-batch, without its messages; an open one is not complete yet."""

    is_open: bool
    slice_size: int
    rows: int
    leased_at: int
    lease_end: int
    longest: int

    @classmethod
    def parse(cls, text: bytes) -> "Known":
        """Parse the stored text."""
        state, *numbers = text.split()
        return cls(state == b"open", *map(int, numbers))

    def batch(self, sequence: int) -> StreamBatch:
        """Return it as the port names it."""
        return StreamBatch(sequence, -(-self.rows // self.slice_size), self.rows)


class RedisStreams:
    """The micro-batches of one kind; see `bulk.port.BulkStore`."""

    def __init__(self, caller: Caller, messages: RedisStore) -> None:
        self._caller = caller
        self._messages = messages

    def last_id(self) -> Steps[int]:
        """Read the counter of ids."""
        return int((yield self._caller.script("bulk/last_id")))

    def backlog(self, due_until: int, now: int, most: int) -> Steps[Backlog]:
        """Ask for the size of a range, without walking over it."""
        reply = yield from self._caller.until_done("bulk/backlog", (now, due_until))
        waiting, first = reply
        return Backlog(min(waiting, most), int(first) if first else None)

    def lease(
        self, batch: BatchId, limit: int, slice_size: int, now: int, until: int, reach: Reach
    ) -> Steps[StreamBatch | None]:
        """Lease from the front of the messages that wait, and complete a batch that is open."""
        own = self._keys(batch)
        known = (yield from self._batches(batch.consumer)).get(batch.sequence)
        if known is not None and not known.is_open:
            return known.batch(batch.sequence)
        rows, longest = (known.rows, known.longest) if known else (0, 0)
        skip, found = 0, MOST_AT_ONCE
        about = (now, until, token_of(batch), *reach)
        while rows < limit and found == MOST_AT_ONCE:
            words: list[Word] = [*batch, limit - rows, *about, skip, slice_size, longest]
            leased, passed, longest, found = yield from self._caller.until_done(
                "bulk/lease", words, own
            )
            rows, skip = rows + leased, skip + passed
        if not rows:
            return None
        text = yield self._caller.script("bulk/close_lease", (batch.sequence,), own=own)
        return Known.parse(text).batch(batch.sequence)

    def extend(self, consumer: str, until: int) -> Steps[int]:
        """Extend the batches one after the other."""
        held = 0
        for sequence, known in (yield from self._batches(consumer)).items():
            batch = BatchId(consumer, sequence)
            own, token = self._keys(batch), token_of(batch)
            for first in range(0, known.rows, MOST_AT_ONCE):
                held += yield self._caller.script("bulk/extend", (first, token, until), own=own)
            yield self._caller.script("bulk/note_lease", (*batch, until), own=own)
        return held

    def ack(self, through: BatchId, now: int) -> Steps[int]:
        """Delete the messages of each batch, then the batch."""
        acked = 0
        for sequence, known in (yield from self._batches(through.consumer)).items():
            if sequence <= through.sequence:
                batch = BatchId(through.consumer, sequence)
                own, left = self._keys(batch), known.rows
                words = (now, 0, token_of(batch), known.leased_at, MOST_BYTES)
                while left:
                    held, left = yield self._caller.script("bulk/ack", words, now, own)
                    acked += held
                yield self._caller.script("bulk/forget_batch", batch, own=own)
        return acked

    def first_batch(self, consumer: str) -> Steps[StreamBatch | None]:
        """Read the records of the batches."""
        for sequence, known in (yield from self._batches(consumer)).items():
            return known.batch(sequence)
        return None

    def forget_stale(self, before: int) -> Steps[None]:
        """Delete batches by the end of their leases."""
        while stale := (yield self._caller.script("bulk/stale", (before,))):
            for name in stale:
                consumer, _, sequence = name.decode().rpartition("\0")
                batch = BatchId(consumer, int(sequence))
                yield self._caller.script("bulk/forget_batch", batch, own=self._keys(batch))

    def slice_lengths(self, batch: BatchId, slice_number: int, page_rows: int) -> Steps[list[int]]:
        """Look the messages up if their sizes matter."""
        known = (yield from self._batches(batch.consumer)).get(batch.sequence)
        if known is None:
            return []
        first = slice_number * known.slice_size
        last = min(first + known.slice_size, known.rows)
        if known.longest * page_rows <= PAGE_BYTES:
            return [0] * max(0, last - first)
        lengths: list[int] = []
        for start in range(first, last, MOST_AT_ONCE):
            words = (start, min(start + MOST_AT_ONCE, last) - 1)
            lengths += yield self._caller.script("bulk/lengths", words, own=self._keys(batch))
        return lengths

    def read_slice(
        self, batch: BatchId, slice_number: int, page: range, *, with_payload: bool
    ) -> Steps[list[MessageRow]]:
        """Look the messages up by id and token."""
        known = (yield from self._batches(batch.consumer)).get(batch.sequence)
        if known is None:
            return []
        base, rows = slice_number * known.slice_size, list[MessageRow]()
        for start in range(base + page.start, base + page.stop, MOST_AT_ONCE):
            last = min(start + MOST_AT_ONCE, base + page.stop) - 1
            words = (start, last, token_of(batch), int(with_payload))
            reply = yield self._caller.script("bulk/read_slice", words, own=self._keys(batch))
            parts = iter(reply)
            rows += [
                _row(key, content, due, attempts, int(number), with_payload=with_payload)
                for number, content, due, attempts, key in zip(*[parts] * 5, strict=True)
            ]
        return rows

    def note_read(self, batch: BatchId, slice_number: int) -> Steps[None]:
        """Remove the slice from those that are unread."""
        yield self._caller.script("bulk/note_read", (slice_number,), own=self._keys(batch))

    def unread(self, through: BatchId) -> Steps[list[tuple[BatchId, int]]]:
        """Look at each batch; one of an earlier version does not tell, and counts as read."""
        found = list[tuple[BatchId, int]]()
        for sequence in (yield from self._batches(through.consumer)):
            if sequence <= through.sequence:
                batch = BatchId(through.consumer, sequence)
                numbers = yield self._caller.script("bulk/unread", own=self._keys(batch))
                found += [(batch, number) for number in sorted(map(int, numbers))]
        return found

    def note_handled(self, batch: BatchId, handler_ms: Mapping[int, int]) -> Steps[None]:
        """Store the times beside the batch."""
        items = list(handler_ms.items())
        for first in range(0, len(items), MOST_AT_ONCE):
            words = [word for item in items[first : first + MOST_AT_ONCE] for word in item]
            yield self._caller.script("bulk/note_handled", words, own=self._keys(batch))

    def release(self, batch: BatchId, releases: Sequence[Release]) -> Steps[set[int]]:
        """Release them like any other messages."""
        token = token_of(batch)
        ours = [release._replace(lease=release.lease._replace(token=token)) for release in releases]
        return self._messages.release(ours)

    def bury(self, batch: BatchId, burials: Sequence[Burial], now: int) -> Steps[set[int]]:
        """Bury them like any other messages, as delivered when the batch was leased."""
        known = (yield from self._batches(batch.consumer)).get(batch.sequence)
        ours = [
            burial._replace(
                lease=burial.lease._replace(
                    token=token_of(batch),
                    delivered_at=burial.lease.delivered_at if known is None else known.leased_at,
                )
            )
            for burial in burials
        ]
        return (yield from self._messages.bury(ours, now))

    def _batches(self, consumer: str) -> Steps[dict[int, Known]]:
        """Return the batches of a consumer by their numbers, in order."""
        own = {"batches": self._caller.keys.named(f"batches:{consumer}")}
        found = iter((yield self._caller.script("bulk/batches", own=own)))
        known = {int(name): Known.parse(text) for name, text in zip(found, found, strict=True)}
        return dict(sorted(known.items()))

    def _keys(self, batch: BatchId) -> dict[str, bytes]:
        named, name = self._caller.keys.named, f"{batch.consumer}:{batch.sequence}"
        return {
            "batches": named(f"batches:{batch.consumer}"),
            "batch_ids": named(f"batch:{name}"),
            "handled": named(f"handled:{name}"),
            "unread": named(f"unread:{name}"),
        }


def _row(
    key: bytes, content: bytes, due: bytes, attempts: int, number: int, *, with_payload: bool
) -> MessageRow:
    message = stored(content, due, b"", attempts)
    payload = message.payload if with_payload else None
    about = (message.headers, message.asked_at, message.due_at, attempts, None, None, None)
    return (key.decode(), payload, *about, number)

"""Reads all messages of a kind, page by page.

Redis has no snapshots. Each page shows a moment of its own, so a message that moves or changes
during the read appears as it is when its page is read. A message that is there from the beginning
to the end is read once. A key that is offered again meanwhile is another message, and may be read
too.
"""

from collections.abc import Generator, Iterator
from functools import partial

from duequeue.bulk.port import (
    PAGE_BYTES,
    PAYLOAD,
    Conditions,
    MessageColumns,
    MessageRow,
    SnapshotPart,
    SnapshotQuery,
)
from duequeue.errors import StoreError
from duequeue.instants import EARLIEST
from duequeue.port.store import Steps
from duequeue.stores.redis.commands import MOST_AT_ONCE, MOST_BYTES, Caller, Script, Word
from duequeue.stores.redis.connections.session import RedisSession
from duequeue.stores.redis.keys import KINDS, QueueKeys
from duequeue.stores.redis.packing import stored
from duequeue.stores.redis.scripts import code
from duequeue.stores.redis_client.settings import RedisSettings

_DUE, _DELIVER, _LEASED = 3, 4, 8


class RedisSnapshots:
    """See `bulk.port.Snapshots`; every part walks over all messages, so one is the default."""

    def __init__(self, settings: RedisSettings, kind_id: int) -> None:
        self._settings = settings
        self._kind_id = kind_id

    def measure(self) -> Steps[range]:
        """Return an empty range, because every part walks over all messages."""
        yield from ()
        return range(0)

    def plan(self, table: range, parts: int | None, seconds: float) -> list[SnapshotPart]:  # noqa: ARG002 - nothing is kept or measured
        """Divide the messages by their ids."""
        many = parts or 1
        return [SnapshotPart(number, number, many, None) for number in range(many)]

    def read(
        self, part: SnapshotPart, page: int, query: SnapshotQuery
    ) -> Generator[MessageColumns, None, None]:
        """Read one part; conditions are checked here."""
        rows: list[MessageRow] = []
        size = 0
        for row in self._rows(part, query):
            rows.append(row)
            size += len(row[PAYLOAD] or b"")
            if len(rows) == page or size >= PAGE_BYTES:
                yield list(zip(*rows, strict=True))
                rows, size = [], 0
        if rows:
            yield list(zip(*rows, strict=True))

    def _rows(self, part: SnapshotPart, query: SnapshotQuery) -> Iterator[MessageRow]:
        session = RedisSession(self._settings)
        try:
            kind = session.run(partial(_kind_of, self._kind_id))
            caller = Caller(QueueKeys(kind))
            keys = query.conditions.keys
            if keys is None:
                found = self._walk(session, caller, part, query)
            elif part.number == 0:
                found = self._select(session, caller, keys, query)
            else:
                found = iter(())
            yield from (row for row in found if _matches(row, query.conditions))
        finally:
            session.close()

    def _walk(
        self, session: RedisSession, caller: Caller, part: SnapshotPart, query: SnapshotQuery
    ) -> Iterator[MessageRow]:
        cursor, seen = b"0", set[int]()
        while True:
            words = (cursor, part.last, part.first, int(query.with_payload))
            cursor, *reply = session.run(partial(_one, caller.script("bulk/page", words)))
            for number, row in _parsed(reply, with_payload=query.with_payload):
                if number not in seen:  # a hash that shrinks meanwhile shows some of it again
                    seen.add(number)
                    yield row
            if cursor == b"0":
                return

    def _select(
        self, session: RedisSession, caller: Caller, keys: list[str], query: SnapshotQuery
    ) -> Iterator[MessageRow]:
        wanted, first = list(dict.fromkeys(keys)), 0
        while first < len(wanted):
            part = wanted[first : first + MOST_AT_ONCE]
            words: list[Word] = [int(query.with_payload), MOST_BYTES, *part]
            done, *reply = session.run(partial(_one, caller.script("bulk/select", words)))
            first += int(done)
            yield from (row for _, row in _parsed(reply, with_payload=query.with_payload))


def _one(command: Script) -> Steps[list[bytes]]:
    reply: list[bytes] = yield command
    return reply


def _kind_of(number: int) -> Steps[str]:
    found: bytes | None = yield Script(code("bulk/kind_of"), [KINDS], (number,))
    if found is None:
        raise StoreError(f"the queue number {number} is not there any more")
    return found.decode()


def _parsed(reply: list[bytes], *, with_payload: bool) -> Iterator[tuple[int, MessageRow]]:
    """Return the id and the row of each message."""
    parts = iter(reply)
    for key, content, due, lease_end, attempts in zip(*[parts] * 5, strict=True):
        number, asked, _ = content.split(b" ", 2)
        message = stored(content, due or asked, lease_end, int(attempts))
        leased_until = int(lease_end) if lease_end else None
        payload = message.payload if with_payload else None
        about = (message.headers, message.asked_at, message.due_at, message.attempts)
        yield int(number), (key.decode(), payload, *about, None, None, leased_until)


def _matches(row: MessageRow, wanted: Conditions) -> bool:
    key, leased_until = row[0], EARLIEST if row[_LEASED] is None else row[_LEASED]
    return (
        (wanted.key_from is None or key >= wanted.key_from)
        and (wanted.key_before is None or key < wanted.key_before)
        and _within(row[_DUE], wanted.due_from, wanted.due_to)
        and _within(row[_DELIVER], wanted.deliver_from, wanted.deliver_to)
        and _within(leased_until, wanted.leased_from, wanted.leased_to)
    )


def _within(value: int, first: int | None, last: int | None) -> bool:
    return (first is None or value >= first) and (last is None or value <= last)

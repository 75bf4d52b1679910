"""The commands of bulk operations that are several statements with decisions between them."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from duequeue.port.store import Steps
from duequeue.stores.sql.commands import Execute, Query, QueryEach, Row
from duequeue.stores.sql.mariadb.alerts import NO_SUCH_CONNECTION, NOT_ITS_OWNER, lock_names
from duequeue.stores.sql.mariadb.partitions import ignoring
from duequeue.stores.wakeup_note import Note

# While a merge runs, no other process can draw an id on a server with the default setting. So a
# statement merges only this many rows.
ROWS_AT_ONCE = 1000

_SLICE = ("slice", "last_due_at", "longest_payload", "ids")


def merge_staged(
    merge: str, *, kind_id: int, writer: int, batch: int, parts: str, now: int
) -> Steps[list[Row]]:
    """Merge the given parts, one range after the other; return the numbers of each range."""
    wanted, stage = set(json.loads(parts)), {"writer": writer, "batch": batch}
    staged: list[Row] = yield Query("list_staged", stage)
    if len(wanted) > 1:
        yield Execute("discard_doubles", {**stage, "parts": parts})
    merged = list[Row]()
    for part, rows in staged:
        for first in range(0, rows if part in wanted else 0, ROWS_AT_ONCE):
            place = {**stage, "part": part, "first": first, "last": first + ROWS_AT_ONCE}
            merged += yield Query(merge, {**place, "kind_id": kind_id, "now": now})
    return merged


def gather_stream_batch(
    *, kind_id: int, consumer: str, sequence: int, until: int, now: int, slice_size: int, **due: int
) -> Steps[list[Row]]:
    """Lock what is due, and store its ids in slices; return the end and the length of each."""
    found: list[Row] = yield Query("find_stream_batch", {"kind_id": kind_id, "now": now, **due})
    slices = [found[first : first + slice_size] for first in range(0, len(found), slice_size)]
    batch = {"kind_id": kind_id, "consumer": consumer, "sequence": sequence}
    each = [(number, *_described(rows)) for number, rows in enumerate(slices)]
    if each:
        yield QueryEach("add_stream_slices", {**batch, "now": now, "until": until}, _SLICE, each)
    return [(rows[-1][0], rows[-1][1], len(rows)) for rows in slices]


def extend_stream_batch(**lease: Any) -> Steps[int]:
    """Extend the leases that are still held, and count them, even if their end stays the same."""
    held: list[Row] = yield Query("extend_batch_leases", lease)
    return len(held)


def slice_lengths(**page: Any) -> Steps[list[Row]]:
    """Return the lengths as a JSON array."""
    rows: list[Row] = yield Query("list_slice_lengths", page)
    return [(json.dumps([length for (length,) in rows]),)]


def note_handled(*, handler_ms: str, **slice_of: Any) -> Steps[int]:
    """Append the times as pairs of an id and a number of milliseconds."""
    pairs = [[int(number), millis] for number, millis in json.loads(handler_ms).items()]
    times = json.dumps(pairs)[1:-1]
    noted: int = yield Execute("add_handler_times", {**slice_of, "times": times})
    return noted


def notify_waiters(*, note: str) -> Steps[list[Row]]:
    """End the sleep of everybody who waits for messages of a kind."""
    ((database,),) = yield Query("name_database")
    names = lock_names(database, Note.parse(note).kind)
    (holders,) = yield QueryEach("find_waiting", {}, ("name",), [(name,) for name in names])
    for number in filter(None, holders):
        with ignoring(NO_SUCH_CONNECTION, NOT_ITS_OWNER):
            yield Execute("end_sleep", {"number": number})
    return []


def _described(rows: list[Row]) -> Row:
    """Return the last due time, the longest payload and the ids of a slice."""
    ids = json.dumps([number for _, number, _ in rows], separators=(",", ":"))
    return rows[-1][0], max(length for _, _, length in rows), ids


STEPS: dict[str, Callable[..., Steps[Any]]] = {
    "merge_staged": partial(merge_staged, "merge_staged_range"),
    "merge_staged_with_history": partial(merge_staged, "merge_staged_range_with_history"),
    "gather_stream_batch": gather_stream_batch,
    "extend_stream_batch": extend_stream_batch,
    "slice_lengths": slice_lengths,
    "note_handled": note_handled,
    "notify_waiters": notify_waiters,
}

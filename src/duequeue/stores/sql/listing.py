"""Listing messages in due order, with the index that serves the filters best."""

from duequeue.message import MAX_KEY_LENGTH
from duequeue.port.listing import Selection
from duequeue.port.store import ListedMessage, Steps, StoredMessage
from duequeue.stores.sql.commands import Query, Row

# Up to this number of keys with a prefix are looked up by key and then sorted. If there are more,
# the messages are walked over in due order, because a page then fills sooner that way.
FEW_KEYS = 10_000
HIGHEST_CHARACTER = chr(0x10FFFF)


def list_messages(kind_id: int, selection: Selection, now: int) -> Steps[list[ListedMessage]]:
    """Read one page."""
    window = selection.window(now)
    bounds = {
        "kind_id": kind_id,
        "after_due": window.after.due_at,
        "after_id": window.after.id,
        "due_until": window.due_until,
        "leased_from": window.leased_from,
        "leased_until": window.leased_until,
        "limit": selection.limit,
    }
    if selection.prefix and (yield from _has_few(kind_id, selection.prefix)):
        query = Query("list_messages_by_key", {**bounds, **_keys_with(selection.prefix)})
    else:
        query = Query("list_messages", {**bounds, "prefix": selection.prefix})
    rows: list[Row] = yield query
    return [ListedMessage(row[0], row[1], StoredMessage(*row[2:])) for row in rows]


def _has_few(kind_id: int, prefix: str) -> Steps[bool]:
    counted = {"kind_id": kind_id, "limit": FEW_KEYS + 1, **_keys_with(prefix)}
    rows: list[Row] = yield Query("count_keys", counted)
    return bool(rows[0][0] <= FEW_KEYS)


def _keys_with(prefix: str) -> dict[str, str]:
    """Return the first and the last key that can begin with this text."""
    last = prefix + HIGHEST_CHARACTER * (MAX_KEY_LENGTH - len(prefix))
    return {"first_key": prefix, "last_key": last}

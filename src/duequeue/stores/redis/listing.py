"""Pages of live messages."""

from heapq import nsmallest

from duequeue.message import State
from duequeue.port.listing import LAST, Position, Selection
from duequeue.port.store import ListedMessage, Steps
from duequeue.stores.redis.calling import MOST_AT_ONCE, MOST_BYTES, Caller
from duequeue.stores.redis.leases import Leases
from duequeue.stores.redis.packing import stored

PARTS = 6  # of a message in the reply


def listed(caller: Caller, selection: Selection, now: int) -> Steps[list[ListedMessage]]:
    """List messages, in several scripts if their payloads are large or few of them match."""
    window = selection.window(now)
    with_free = int(selection.state is not State.LEASED)
    with_leased = int(selection.state in {None, State.LEASED})
    after: Position | None = window.after
    found: list[ListedMessage] = []
    leases = Leases(caller)
    while after is not None and len(found) < selection.limit:
        most = min(selection.limit - len(found), MOST_AT_ONCE)
        which = (window.due_until, with_free, with_leased, selection.prefix, most, MOST_BYTES)
        matching = [
            position
            for position, key in leases.seen.values()
            if after < position <= (window.due_until, LAST) and key.startswith(selection.prefix)
        ]
        first = nsmallest(MOST_AT_ONCE, matching)
        horizon = first[-1] if len(first) < len(matching) else ("", "")
        ids = [position.id for position in first]
        reply = yield from caller.until_done(
            "list", (now, *after, *which, *leases.last, *horizon, *ids)
        )
        if not reply:
            yield from leases.see_all()
            continue
        due_at, number, *rest = reply
        after = Position(int(due_at), int(number)) if due_at else None
        parts = iter(rest)
        found += [
            ListedMessage(int(each), key.decode(), stored(*about))
            for each, key, *about in zip(*[parts] * PARTS, strict=True)
        ]
    return found

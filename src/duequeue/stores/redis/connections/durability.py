"""What makes a change durable beyond the primary's memory, if the URL demands it.

WAITAOF and WAIT are about the changes of their own connection. A script that is repeated after a
lost answer may change nothing. So a small extra write goes before them, because it comes later in
the stream of changes than everything that the script found.
"""

from typing import Any

from redis.exceptions import ConnectionError as LostConnection

from duequeue.stores.redis.commands import Question, Script
from duequeue.stores.redis.scripts import code
from duequeue.stores.redis_client.settings import Durable, RedisSettings, Way
from duequeue.stores.shards import Together

# A change that is not confirmed within these seconds counts as failed.
CONFIRM_WITHIN = 5.0

_UNCONFIRMED = {
    Durable.FSYNC: "it was not written to the disk of the server within {:.3g} s",
    Durable.REPLICA: "no replica had it within {:.3g} s",
}


def slots_to_confirm(command: Script | Together | Question) -> list[bytes]:
    """Return a key of each slot in which a command has changed something that must last."""
    if isinstance(command, Question):
        return []
    scripts = command.commands if isinstance(command, Together) else (command,)
    found = {script.slot_key for script in scripts if script.code.lasting}
    return sorted(found)


def barrier(slot: bytes) -> Script:
    """Return a write to the slot of a key."""
    return Script(code("barrier"), [_barrier_key(slot)], ())


def looks_before_waits(
    settings: RedisSettings, slots: list[bytes]
) -> list[tuple[str, bytes] | None]:
    """Return for each wait what to ask before it, so that it goes to the same server, if anything.

    The barriers of all slots are written before the first wait. So one synchronization of a server
    confirms all of its slots.
    """
    if settings.way is Way.CLUSTER and len(slots) > 1:
        return [("GET", _barrier_key(slot)) for slot in slots]
    return [None] if slots else []


def wait_words(durable: Durable, seconds: float) -> tuple[str, ...]:
    """Return the command that waits for the write before it."""
    millis = str(max(1, int(1000 * min(seconds, CONFIRM_WITHIN))))
    return ("WAITAOF", "1", "0", millis) if durable is Durable.FSYNC else ("WAIT", "1", millis)


def require_confirmed(durable: Durable, reply: Any) -> None:
    """Raise if nobody confirmed the write in time."""
    confirmed = reply[0] if durable is Durable.FSYNC else reply
    if not confirmed:
        reason = _UNCONFIRMED[durable].format(CONFIRM_WITHIN)
        raise LostConnection(f"the change was made, but {reason}, as durable= in the url demands")


def _barrier_key(slot: bytes) -> bytes:
    return slot[: slot.index(b"}") + 1] + b":barrier"

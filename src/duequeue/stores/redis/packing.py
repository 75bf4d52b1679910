"""How messages and burials are written in Redis: numbers as text, then bytes of known length."""

from duequeue.instants import EARLIEST
from duequeue.port.burial_table import StoredBurial
from duequeue.port.fencing import IN_HAND
from duequeue.port.store import Claimed, Lease, Record, StoredMessage, StoredResponse

# What stands for None.
NOTHING = b"-"


def tail_of(record: Record) -> bytes:
    """Return what is stored of a record after its id and its due time."""
    _, payload, _, headers, _, expires_at = record
    tail = b"%b %d %b" % (
        NOTHING if expires_at is None else b"%d" % expires_at,
        len(payload),
        payload,
    )
    return tail if headers is None else tail + headers.encode()


def claimed(member: bytes, content: bytes, due: bytes, counts: int, lease: Lease) -> Claimed:
    """Return a claimed message; `lease` lacks the id and the key, which are in the member."""
    attempt, losses = divmod(counts, IN_HAND)
    digits = member[0] - 95
    key = member[digits:].decode()
    _, asked, expires, size, rest = content.split(b" ", 4)
    length = int(size)
    return Claimed(
        Lease(int(member[1:digits]), lease.token + losses, lease.delivered_at, key),
        key,
        rest[:length],
        int(asked),
        attempt,
        rest[length:].decode() or None,
        int(due),
        None if expires == NOTHING else int(expires),
    )


def stored(content: bytes, due: bytes, lease_end: bytes, attempts: int) -> StoredMessage:
    """Return a live message."""
    _, asked, expires, size, rest = content.split(b" ", 4)
    length = int(size)
    return StoredMessage(
        rest[:length],
        int(asked),
        int(due),
        int(lease_end) if lease_end else EARLIEST,
        attempts,
        rest[length:].decode() or None,
        None if expires == NOTHING else int(expires),
    )


def burial(number: bytes, text: bytes) -> StoredBurial:
    """Return a burial; its number is marked with a letter."""
    asked, attempts, buried_at, key_size, reason_size, rest = text.split(b" ", 5)
    reason_at = int(key_size)
    tail_at = reason_at + int(reason_size)
    size, content = rest[tail_at:].split(b" ", 1)
    length = int(size)
    return StoredBurial(
        rest[:reason_at].decode(),
        content[:length],
        int(asked),
        int(attempts),
        rest[reason_at:tail_at].decode(),
        int(buried_at),
        content[length:].decode() or None,
        int(number[1:]),
    )


def response(text: bytes) -> StoredResponse:
    """Return a response, or the reason why there is none."""
    responded_at, _, rest = text.split(b" ", 2)
    if rest.startswith(b"a"):
        return StoredResponse(rest[1:], None, int(responded_at))
    return StoredResponse(None, rest[1:].decode(), int(responded_at))

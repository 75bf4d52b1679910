"""The opaque token of a delivery, which proves to any server that its holder has the lease.

It holds what identifies the lease, with the fencing token of 58 random bits. Nobody can guess
these, so the text needs no signature, and every server of the same database understands it. Its
checksum catches texts that were cut short or belong to another queue.
"""

from typing import NamedTuple
from zlib import crc32

import msgspec

from duequeue.errors import InvalidArgument
from duequeue.leased import LeasedMessage
from duequeue.port.store import Lease

_CHECKSUM_BYTES = 4


class HeldLease(NamedTuple):
    """A lease, and how often its message was delivered."""

    lease: Lease
    attempts: int


_decode = msgspec.msgpack.Decoder(HeldLease).decode
_encode = msgspec.msgpack.Encoder().encode


def token_of(message: LeasedMessage[bytes], kind: str) -> str:
    """Return the token of a delivery of a queue."""
    data = _encode(HeldLease(message.lease, message.attempt))
    return (_checksum(data, kind) + data).hex()


def held_lease(token: str, kind: str, argument: str) -> HeldLease:
    """Return the lease that a token stands for, or raise for any other text."""
    try:
        whole = bytes.fromhex(token)
        checksum, data = whole[:_CHECKSUM_BYTES], whole[_CHECKSUM_BYTES:]
        if checksum == _checksum(data, kind) and whole.hex() == token:
            held = _decode(data)
            if is_held(held.lease):
                return held
    except (msgspec.DecodeError, ValueError):
        pass
    raise InvalidArgument(argument, "must be the token of a delivery of this queue, unchanged")


def is_held(lease: Lease) -> bool:
    """Return whether a claim can have made this lease; in stores, 0 stands for none."""
    return lease.token > 0


def _checksum(data: bytes, kind: str) -> bytes:
    return crc32(data, crc32(kind.encode())).to_bytes(_CHECKSUM_BYTES)

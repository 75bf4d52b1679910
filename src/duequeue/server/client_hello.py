"""How many bytes a TLS connection begins with, before TLS itself looks at them.

OpenSSL takes memory for as much as a client announces, which may be 128 KiB.
"""

import asyncio
import socket

# The header of a record and that of the message in it.
FIRST_BYTES = 9
# What real clients send has less than 4 KiB, even with the keys of post-quantum cryptography.
MOST_BYTES = 16 * 1024
# A client with little memory may cut its message into records of 512 bytes.
MOST_RECORDS = MOST_BYTES // 512
_RECORD_HEADER, _MESSAGE_HEADER = 5, 4
_HANDSHAKE, _TLS, _CLIENT_HELLO = 22, 3, b"\x01"
_ROOM = MOST_BYTES + MOST_RECORDS * _RECORD_HEADER


class NotAHello(ConnectionError):
    """A client does not begin a handshake, or announces too much."""


def bytes_needed(began: bytes) -> int:
    """Return how many bytes must have come before TLS may look, or before we know more.

    The message is complete if that many have come.
    """
    message, end = b"", 0
    for _ in range(MOST_RECORDS):
        begin = end + _RECORD_HEADER
        if len(began) < begin:
            return max(begin, FIRST_BYTES)
        length = int.from_bytes(began[begin - 2 : begin])
        if began[end] != _HANDSHAKE or began[end + 1] != _TLS or not length:
            raise NotAHello
        end = begin + length
        message += began[begin:end]
        is_whole = len(message) >= _announced(message)
        if end > _ROOM:
            raise NotAHello
        if is_whole or len(began) < end:
            return end
    raise NotAHello


def _announced(message: bytes) -> int:
    """Return the length of a message that begins like this."""
    if not _CLIENT_HELLO.startswith(message[:1]):
        raise NotAHello
    if len(message) < _MESSAGE_HEADER:
        return _MESSAGE_HEADER
    length = _MESSAGE_HEADER + int.from_bytes(message[1:_MESSAGE_HEADER])
    if length > MOST_BYTES:
        raise NotAHello
    return length


async def hello_from(client: socket.socket) -> None:
    """Wait for the first message of a client, and leave it to TLS; raise if it is not one.

    Until then, its bytes take no memory but the kernel's, which wakes us when enough have come.
    """
    loop = asyncio.get_running_loop()
    began, needed = b"", FIRST_BYTES
    while len(began) < needed:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, needed)
        readable = loop.create_future()
        loop.add_reader(client, _wake, readable)
        try:
            await readable
        finally:
            loop.remove_reader(client)
        began = client.recv(_ROOM, socket.MSG_PEEK)
        if len(began) < needed:  # no more will come
            raise NotAHello
        needed = bytes_needed(began)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)

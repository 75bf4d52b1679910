"""Servers by their host and port, and the slots of a cluster by the names of keys."""

from binascii import crc_hqx
from typing import NamedTuple

from duequeue.errors import InvalidArgument

SLOTS = 16_384


class Server(NamedTuple):
    """Where one server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_servers(text: str, default_port: int) -> tuple[Server, ...]:
    """Parse `host:port,host:port`; without a host it is this machine."""
    return tuple(parse_server(part, default_port) for part in text.split(","))


def parse_server(text: str, default_port: int) -> Server:
    """Parse one `host:port`; the host of an IPv6 address is in brackets, or has no port."""
    host, _, port = text.rpartition(":")
    if "]" in port or ":" not in text:
        host, port = text, ""
    if port and not (port.isascii() and port.isdecimal() and 0 < int(port) < 2**16):
        # The port is not shown, because in a URL without a host it is the password.
        raise InvalidArgument("url", "has a port that is not a whole number from 1 to 65535")
    return Server(host.strip("[]") or "localhost", int(port or default_port))


def slot_of(key: str | bytes) -> int:
    """Return the slot of a key: the checksum of what stands in braces, or else of all of it."""
    name = key.encode() if isinstance(key, str) else key
    opened = name.find(b"{")
    if opened >= 0:
        closed = name.find(b"}", opened + 1)
        if closed > opened + 1:
            name = name[opened + 1 : closed]
    return crc_hqx(name, 0) % SLOTS

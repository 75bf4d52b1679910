"""Which addresses belong to the public internet, and which to metadata services of clouds.

Names are looked up on threads of their own. A name server that does not answer holds its thread
until the lookup is given up, and asyncio's own threads are few. aiohttp starts at most one lookup
per name at a time.
"""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from aiohttp.abc import AbstractResolver, ResolveResult

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# A thread starts when a lookup needs one, and then only waits for the name server.
THREADS = 512
# How long a lookup waits for one of the threads.
PATIENCE_SECONDS = 5.0


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


# At these addresses, clouds hand out credentials to any program on the machine that asks.
METADATA = _networks(
    "169.254.0.0/16",  # link-local, where most clouds have theirs
    "100.100.100.200/32",  # Alibaba Cloud
    "168.63.129.16/32",  # Azure
    "192.0.0.192/32",  # Oracle Cloud
    "fe80::/10",  # link-local
    "fd00:ec2::/32",  # AWS
    "fd00:42::42/128",  # Scaleway
    "fd20:ce::254/128",  # Google Cloud
)

# A network may translate these to any IPv4 address, and only the network knows which bits hold it.
TRANSLATED = _networks("64:ff9b:1::/48", "::ffff:0:0:0/96")

# The registries of special addresses. They are written out, because what Python calls global
# has changed between its releases.
NOT_PUBLIC = _networks(
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "2001::/23",
    "2001:db8::/32",
    "3fff::/20",
)
PUBLIC_V6 = IPv6Network("2000::/3")

_NAT64 = IPv6Network("64:ff9b::/96")
_V4_COMPATIBLE = IPv6Network("::/96")
_SMALLEST_COMPATIBLE = 0x10000  # :: and ::1 are not IPv4 addresses
# A connection to an address of zeros goes to this machine.
_THIS_MACHINE: dict[Address, Address] = {
    IPv4Address(0): IPv4Address("127.0.0.1"),
    IPv6Address(0): IPv6Address("::1"),
}


def is_metadata(address: Address) -> bool:
    """Return whether an address may hand out credentials."""
    return within(address, METADATA) or within(address, TRANSLATED)


def is_public(address: Address) -> bool:
    """Return whether an address belongs to the public internet."""
    if isinstance(address, IPv6Address) and address not in PUBLIC_V6:
        return False
    return not within(address, NOT_PUBLIC) and not is_metadata(address)


def within(address: Address, networks: tuple[Network, ...]) -> bool:
    """Return whether an address is in one of the networks."""
    return any(address in network for network in networks)


def leads_to(address: Address) -> Address:
    """Return the address that a connection to an address really reaches."""
    found = unwrapped(address)
    return _THIS_MACHINE.get(found, found)


def unwrapped(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address leads to, or else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    compatible = address in _V4_COMPATIBLE and int(address) >= _SMALLEST_COMPATIBLE
    if compatible or address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


@lru_cache(maxsize=4096)
def parse_address(text: str) -> Address:
    """Read an address as a socket has it; the zone of a link-local address does not matter."""
    return ip_address(text.partition("%")[0])


class NoThread(OSError):
    """A name was not looked up, because lookups of other names hang. This name is not to blame."""

    def __init__(self, host: str) -> None:
        self.reason = f"the name {host} was not looked up, because too many other lookups hang"
        super().__init__(self.reason)


class Lookups(AbstractResolver):
    """The resolver of the system, with enough threads for many lookups that hang."""

    def __init__(self, threads: int = THREADS, patience: float = PATIENCE_SECONDS) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="duequeue-lookup")
        self._free = asyncio.Semaphore(threads)
        self._patience = patience

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return all addresses of a name."""
        try:
            async with asyncio.timeout(self._patience):
                await self._free.acquire()
        except TimeoutError:
            raise NoThread(host) from None
        lookup = asyncio.get_running_loop().run_in_executor(
            self._threads,
            socket.getaddrinfo,
            host,
            port,
            family,
            socket.SOCK_STREAM,
            0,
            socket.AI_ADDRCONFIG,
        )
        lookup.add_done_callback(lambda _: self._free.release())
        found = await lookup
        return [
            ResolveResult(
                hostname=host,
                host=_with_zone(address),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Start no more lookups; those that hang end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _with_zone(address: tuple[object, ...]) -> str:
    """Return the address, with the zone that a link-local one needs."""
    zone = address[3] if len(address) > 3 else 0  # noqa: PLR2004 - host, port, flow and zone
    return f"{address[0]}%{zone}" if zone else str(address[0])

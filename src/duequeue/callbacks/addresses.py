"""Which addresses belong to the public internet, and which to metadata services of clouds."""

from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


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

"""Where callbacks may go.

A name in a URL says little, because each lookup may return another address. So the guard checks
the address of each connection when its socket is made, after all lookups.
"""

import socket
from collections.abc import Callable, Iterable
from ipaddress import ip_network
from typing import Any, Literal, get_args

from yarl import URL

from duequeue.callbacks.addresses import (
    TRANSLATED,
    Address,
    Network,
    is_metadata,
    is_public,
    leads_to,
    parse_address,
    within,
)
from duequeue.errors import InvalidArgument, InvalidType

Policy = Literal["metadata", "public", "off"]

AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[Any, ...]]


class Refused(OSError):
    """A callback must not go there.

    It is an OSError so that a client tries the next address of the name, as after any connection
    that cannot be made.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def default_policy(*, has_tokens: bool) -> Policy:
    """Return the policy unless one is chosen; a file of tokens means that clients are not alike."""
    return "public" if has_tokens else "metadata"


class Guard:
    """A policy, and networks that are always allowed or denied; a denial comes first.

    `metadata` refuses link-local addresses and the metadata services of clouds. `public` refuses
    everything that is not on the public internet, this machine included. `off` refuses nothing.
    """

    def __init__(
        self,
        policy: Policy = "metadata",
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        *,
        https_only: bool = False,
    ) -> None:
        if policy not in get_args(Policy):
            raise InvalidArgument(
                "policy", f"must be one of {', '.join(get_args(Policy))}, not {policy!r}"
            )
        self.policy = policy
        self.https_only = https_only
        self._allow = _read_networks(allow, "allow")
        self._deny = _read_networks(deny, "deny")
        self._permits = _PERMITS[policy]

    def __repr__(self) -> str:
        return f"Guard({self.policy!r})"

    def checked_url(self, url: str) -> URL:
        """Return a URL as it is called.

        Raise ValueError if it does not fit an endpoint, and Refused if it is forbidden.
        """
        parts = _parsed(url)
        if parts.scheme not in {"http", "https"}:
            raise InvalidArgument("url", "must begin with https:// or http://")
        # Check the parsed host, because the text may have digits and dots of other scripts.
        host = (parts.raw_host or "").rstrip(".")
        if not host:
            raise InvalidArgument("url", "must name a host, as in https://example.com/callbacks")
        if parts.raw_user is not None or parts.raw_password is not None:
            raise InvalidArgument(
                "url",
                "must not hold a user name or a password, because it is shown and logged; "
                "the receiver can verify the signature instead",
            )
        if self.https_only and parts.scheme != "https":
            raise Refused("url must begin with https://, because only https is allowed here")
        address = _literal_address(host)
        if address is not None:
            self.check_address(address)
        elif "%" in host:
            raise InvalidArgument("url", "must not have percent-encoded characters in its host")
        return parts

    def check_address(self, address: Address) -> None:
        """Raise Refused unless callbacks may go to an address."""
        reached = leads_to(address)
        if self._lists(self._deny, address, reached):
            raise Refused(f"callbacks to {address} are refused: the address is denied here")
        if self._permits(reached) or self._lists(self._allow, address, reached):
            return
        raise Refused(f"callbacks to {address} are refused: it is {_kind(reached)}")

    def open_socket(self, info: AddressInfo) -> socket.socket:
        """Make the socket of a new connection, unless its address is refused."""
        family, kind, protocol, _, address = info
        self.check_address(parse_address(address[0]))
        return socket.socket(family, kind, protocol)

    @staticmethod
    def _lists(networks: tuple[Network, ...], address: Address, reached: Address) -> bool:
        return within(address, networks) or within(reached, networks)


_PERMITS: dict[Policy, Callable[[Address], bool]] = {
    "metadata": lambda address: not is_metadata(address),
    "public": is_public,
    "off": lambda _: True,
}


def _kind(address: Address) -> str:
    if within(address, TRANSLATED):
        return "an address that a network may translate to any other"
    return "a link-local or metadata address" if is_metadata(address) else "not a public address"


def _read_networks(texts: Iterable[str], argument: str) -> tuple[Network, ...]:
    if isinstance(texts, str):
        raise InvalidType(argument, "must be a list of networks, not one str")
    if not isinstance(texts, Iterable):
        raise InvalidType(argument, f"must be a list of networks, not {texts!r}")
    try:
        return tuple(ip_network(text) for text in texts)
    except ValueError as error:
        raise InvalidArgument(argument, f"must hold networks such as 10.0.0.0/8: {error}") from None


def _parsed(url: str) -> URL:
    if not isinstance(url, str):
        raise InvalidType("url", f"must be a str, not {type(url).__name__}")
    if any(character.isspace() or not character.isprintable() for character in url):
        raise InvalidArgument(
            "url", "must not have spaces or control characters; percent-encode them"
        )
    try:
        parts = URL(url, encoded=url.isascii())  # else %2F in a query would become a slash
        _ = parts.port
    except ValueError as error:
        words = "" if "@" in url else f": {error}"  # the error may quote a password
        raise InvalidArgument("url", "cannot be read" + words) from None
    return parts


def _literal_address(host: str) -> Address | None:
    """Return the address if a host is one, also in old forms such as 127.1 or 0x7f000001."""
    try:
        return parse_address(host)
    except ValueError:
        pass
    if not host[0].isdigit():
        return None
    try:
        return parse_address(socket.inet_ntoa(socket.inet_aton(host)))
    except (OSError, UnicodeEncodeError):
        return None

"""How to reach a MariaDB or MySQL server."""

import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import unquote

from duequeue.defaults import POOL_SIZE
from duequeue.errors import InvalidArgument
from duequeue.stores.url_parts import (
    refuse_unencoded_credentials,
    refuse_unknown_options,
    split_options,
)

DEFAULT_PORT = 3306
CONNECT_SECONDS = 5.0
OPTIONS = {
    "alerts",
    "charset",
    "connect_timeout",
    "pool_size",
    "ssl_ca",
    "ssl_cert",
    "ssl_key",
    "ssl_mode",
    "unix_socket",
}
SSL_MODES = ("disabled", "preferred", "required", "verify_ca", "verify_identity")

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]*)(?::([0-9]+))?")


class Host(NamedTuple):
    """A server's name and port."""

    name: str
    port: int

    def __str__(self) -> str:
        shown = f"[{self.name}]" if ":" in self.name else self.name
        return f"{shown}:{self.port}"


class HostAddress(NamedTuple):
    """The hosts of a database, or its unix socket, which are safe to show."""

    hosts: tuple[Host, ...]
    unix_socket: str | None
    database: str

    def __str__(self) -> str:
        where = self.unix_socket or ",".join(map(str, self.hosts))
        return f"{where}/{self.database}"


@dataclass(frozen=True)
class MariadbSettings:
    """A checked URL, whose password is never shown."""

    address: HostAddress
    user: str = ""
    password: str = field(default="", repr=False)
    pool_size: int = POOL_SIZE
    connect_seconds: float = CONNECT_SECONDS
    ssl_mode: str = "preferred"
    ssl_ca: str | None = None
    ssl_cert: str | None = None
    ssl_key: str | None = None
    # The URL of a Redis through which processes wake each other, with its password.
    alerts: str | None = field(default=None, repr=False)
    # Connections for reads only, each of which the server ends after this many seconds.
    read_seconds: float | None = None

    @classmethod
    def from_url(cls, url: str) -> "MariadbSettings":
        """Parse `mariadb://user:password@host:port,host:port/database?option=value`."""
        refuse_unencoded_credentials(url)
        location, options = split_options(url)
        refuse_unknown_options(options, OPTIONS)
        given = {name: unquote(value) for name, value in options.items()}
        authority, _, database = location.partition("://")[2].partition("/")
        login, _, hosts = authority.rpartition("@")
        user, _, password = login.partition(":")
        if not database or "/" in database:
            raise InvalidArgument(
                "url", "must name one database, as in mariadb://user:password@host/database"
            )
        if given.get("charset", "utf8mb4") != "utf8mb4":
            raise InvalidArgument("url", text="charset in the url must be utf8mb4, or be left out")
        if "ssl_key" in given and "ssl_cert" not in given:
            raise InvalidArgument(
                "url", text="ssl_key in the url needs ssl_cert, the certificate of that key"
            )
        address = HostAddress(_hosts(hosts), given.get("unix_socket"), unquote(database))
        return cls(
            address,
            unquote(user),
            unquote(password),
            _whole_number(given, "pool_size", POOL_SIZE),
            float(_whole_number(given, "connect_timeout", int(CONNECT_SECONDS))),
            _ssl_mode(given),
            given.get("ssl_ca"),
            given.get("ssl_cert"),
            given.get("ssl_key"),
            given.get("alerts"),
        )

    @property
    def place(self) -> str:
        """The URL without its secrets and options."""
        return f"mariadb://{self.user}@{self.address}"

    @cached_property
    def ssl_context(self) -> ssl.SSLContext | None:
        """How connections are encrypted."""
        if self.ssl_mode == "disabled" or self.address.unix_socket is not None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.ssl_mode == "verify_identity"
        if self.ssl_mode in {"verify_ca", "verify_identity"}:
            if self.ssl_ca is None:
                context.load_default_certs()
            else:
                with _reading("ssl_ca"):
                    context.load_verify_locations(self.ssl_ca)
        else:
            context.verify_mode = ssl.CERT_NONE
        if self.ssl_cert is not None:
            with _reading("ssl_cert or ssl_key"):
                context.load_cert_chain(self.ssl_cert, self.ssl_key)
        return context

    @property
    def must_encrypt(self) -> bool:
        """Whether a server that does not encrypt is refused."""
        return self.ssl_mode not in {"disabled", "preferred"}

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of every connection, for each of the drivers."""
        return {
            "user": self.user or None,
            "password": self.password.encode(),  # the drivers would encode it as Latin 1
            "database": self.address.database,
            "unix_socket": self.address.unix_socket,
            "charset": "utf8mb4",
            "autocommit": True,
            "program_name": "duequeue",
        }


def _hosts(text: str) -> tuple[Host, ...]:
    hosts = []
    for part in text.split(","):
        found = _HOST.fullmatch(part)
        port = int(found[2] or DEFAULT_PORT) if found else 0
        is_missing = part == "" != text
        if found is None or is_missing or not 0 < port < 2**16:
            # The port is not shown, because in a URL without a host it may be the password.
            raise InvalidArgument(
                "url", "has a host that is not host or host:port, with a port from 1 to 65535"
            )
        hosts.append(Host(unquote(found[1]).strip("[]") or "localhost", port))
    return tuple(hosts)


@contextmanager
def _reading(option: str) -> Iterator[None]:
    """Name the option of a file that cannot be used, which no later try would change."""
    try:
        yield
    except OSError as error:
        raise InvalidArgument(
            "url", text=f"{option} in the url names a file that cannot be used: {error}"
        ) from None


def _whole_number(options: Mapping[str, str], name: str, otherwise: int) -> int:
    text = options.get(name, str(otherwise))
    if not text.isdecimal() or int(text) < 1:
        raise InvalidArgument(
            "url", text=f"{name} in the url must be a whole number above 0, not {text!r}"
        )
    return int(text)


def _ssl_mode(options: Mapping[str, str]) -> str:
    verifies = "verify_ca" if "ssl_ca" in options else "preferred"
    mode = options.get("ssl_mode", verifies).lower().replace("-", "_")
    if mode not in SSL_MODES:
        raise InvalidArgument(
            "url", text=f"ssl_mode in the url must be one of {', '.join(SSL_MODES)}, not {mode!r}"
        )
    return mode

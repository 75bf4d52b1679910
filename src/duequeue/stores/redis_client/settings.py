"""How to reach a Redis or Valkey: one server, the primary that Sentinel names, or a cluster."""

import re
from binascii import crc_hqx
from dataclasses import dataclass, field
from enum import Enum
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

SLOTS = 16_384

PORT = 6379
SENTINEL_PORT = 26379
DEFAULT_USER = "default"  # as whom Redis logs in a client that names nobody
MOST_SHARDS = 256

OWN_OPTIONS = {
    "db",
    "durable",
    "eviction",
    "persistence",
    "pool_size",
    "sentinel_password",
    "sentinel_username",
    "shards",
}
TLS_OPTIONS = {
    "ssl_ca_certs",
    "ssl_ca_path",
    "ssl_cert_reqs",
    "ssl_certfile",
    "ssl_check_hostname",
    "ssl_keyfile",
    "ssl_password",
}

_SCHEME = re.compile(r"(redis|valkey)(s?)(?:\+(sentinel|cluster))?|unix", re.IGNORECASE)


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


class Way(Enum):
    """How the server that takes writes is found."""

    SERVER = "server"
    SOCKET = "socket"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


class Durable(Enum):
    """What a change waits for before it counts as made, beside the answer of the primary."""

    NOTHING = ""
    FSYNC = "fsync"
    REPLICA = "replica"


@dataclass(frozen=True)
class Credentials:
    """A user and a password, which are never shown; Redis has a default user."""

    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class RedisSettings:
    """A checked URL, whose passwords are never shown."""

    way: Way
    servers: tuple[Server, ...] = ()
    path: str = ""
    service: str = ""
    database: int = 0
    credentials: Credentials = Credentials()
    sentinel_credentials: Credentials = Credentials()
    # The arguments for TLS that the driver takes; without TLS there are none.
    tls: tuple[tuple[str, Any], ...] | None = field(default=None, repr=False)
    pool_size: int = POOL_SIZE
    durable: Durable = Durable.NOTHING
    # Into how many parts, each in a slot of its own, the keys of a queue are divided.
    shards: int = 1
    may_evict: bool = False
    may_forget: bool = False

    @classmethod
    def from_url(cls, url: str) -> "RedisSettings":
        """Parse a URL."""
        refuse_unencoded_credentials(url)
        location, options = split_options(url)
        refuse_unknown_options(options, OWN_OPTIONS | TLS_OPTIONS)
        return _parse(location, {name: unquote(value) for name, value in options.items()})

    @cached_property
    def address(self) -> str:
        """Where it is, for people to read."""
        listed = ",".join(str(server) for server in self.servers)
        match self.way:
            case Way.SERVER:
                return f"{listed}/{self.database}"
            case Way.SOCKET:
                return f"{self.path}?db={self.database}"
            case Way.SENTINEL:
                return f"{listed}/{self.service}/{self.database}"
            case Way.CLUSTER:
                return listed

    @cached_property
    def place(self) -> str:
        """A name that is equal in this process for URLs that mean the same keys and user.

        Queues that share connections for wake-ups have it in common, and so the rights of a user.
        """
        user = self.credentials.username or DEFAULT_USER
        parts = "" if self.shards == 1 else f" in {self.shards} shards"
        return f"redis {self.way.value} {user}@{self.address}{parts}"

    def clean(self, text: str) -> str:
        """Replace the passwords in a driver's message by asterisks."""
        for credentials in (self.credentials, self.sentinel_credentials):
            if credentials.password:
                text = text.replace(credentials.password, "***")
        return text


def _parse(location: str, options: dict[str, str]) -> RedisSettings:
    scheme, _, rest = location.partition("://")
    match = _SCHEME.fullmatch(scheme)
    if match is None:
        raise InvalidArgument(
            "url", "must start with redis://, rediss:// or unix://, or with valkey://"
        )
    _, secured, topology = match.groups()
    account, _, after = rest.rpartition("@")
    authority, _, path = after.partition("/")
    way = Way.SOCKET if scheme.lower() == "unix" else Way(topology or "server")
    _refuse_what_does_not_apply(way, options, is_secured=bool(secured))
    path, database = _path_and_database(way, unquote(path), options)
    return RedisSettings(
        way,
        servers=_servers(way, authority),
        path=f"/{path}" if way is Way.SOCKET else "",
        service=path if way is Way.SENTINEL else "",
        database=database,
        credentials=_credentials(account),
        sentinel_credentials=Credentials(
            options.get("sentinel_username"), options.get("sentinel_password")
        ),
        tls=_tls_arguments(options) if secured else None,
        pool_size=_whole_number("pool_size", options, POOL_SIZE, 1, 10_000),
        durable=Durable(_one_of("durable", options, ("fsync", "replica"))),
        shards=_whole_number("shards", options, 1, 1, MOST_SHARDS),
        may_evict=_one_of("eviction", options, ("allow",)) == "allow",
        may_forget=_one_of("persistence", options, ("none",)) == "none",
    )


def _servers(way: Way, authority: str) -> tuple[Server, ...]:
    if way is Way.SOCKET:
        return ()
    servers = parse_servers(authority, SENTINEL_PORT if way is Way.SENTINEL else PORT)
    if way is Way.SERVER and len(servers) > 1:
        raise InvalidArgument(
            "url",
            "names several servers: begin it with redis+cluster:// or redis+sentinel://, or "
            "name only one",
        )
    return servers


def _refuse_what_does_not_apply(way: Way, options: dict[str, str], *, is_secured: bool) -> None:
    for name in options:
        if name in TLS_OPTIONS and not is_secured:
            raise InvalidArgument(
                "url", text=f"{name} in the url needs TLS: begin the url with rediss://"
            )
        if name.startswith("sentinel_") and way is not Way.SENTINEL:
            raise InvalidArgument(
                "url", text=f"{name} in the url needs a url that begins with redis+sentinel://"
            )


def _path_and_database(way: Way, path: str, options: dict[str, str]) -> tuple[str, int]:
    """Return the socket or the service if the path names one, and the number of the database."""
    rest, number = path, ""
    if way is Way.SENTINEL:
        rest, _, number = path.partition("/")
        if not rest:
            raise InvalidArgument(
                "url",
                "must name the service that Sentinel watches, such as "
                "redis+sentinel://host:26379/mymaster/0",
            )
    elif way is not Way.SOCKET:
        rest, number = "", path
    elif not path:
        raise InvalidArgument("url", "must name the socket, such as unix:///run/redis.sock?db=0")
    if "db" in options and number:
        raise InvalidArgument(
            "url", "names the database twice, in its path and as db; leave one of them"
        )
    number = options.get("db", number) or "0"
    if not re.fullmatch("[0-9]{1,9}", number):
        raise InvalidArgument(
            "url", text=f"the database in the url must be a whole number, not {number!r}"
        )
    if way is Way.CLUSTER and int(number):
        raise InvalidArgument(
            "url", text=f"a cluster has only database 0, but the url names {number}"
        )
    return rest, int(number)


def _credentials(account: str) -> Credentials:
    username, _, password = account.partition(":")
    return Credentials(unquote(username) or None, unquote(password) or None)


def _tls_arguments(options: dict[str, str]) -> tuple[tuple[str, Any], ...]:
    given: dict[str, Any] = {name: options[name] for name in sorted(TLS_OPTIONS & options.keys())}
    if "ssl_cert_reqs" in given:
        _one_of("ssl_cert_reqs", options, ("none", "optional", "required"))
    if "ssl_check_hostname" in given:
        checked = _one_of("ssl_check_hostname", options, ("true", "false"))
        given["ssl_check_hostname"] = checked == "true"
    return tuple(given.items())


def _one_of(name: str, options: dict[str, str], known: tuple[str, ...]) -> str:
    value = options.get(name, "")
    if name in options and value not in known:
        raise InvalidArgument(
            "url", text=f"{name} in the url must be {' or '.join(known)}, not {value!r}"
        )
    return value


def _whole_number(name: str, options: dict[str, str], default: int, least: int, most: int) -> int:
    value = options.get(name, str(default))
    if not re.fullmatch("[0-9]{1,9}", value) or not least <= int(value) <= most:
        raise InvalidArgument(
            "url",
            text=f"{name} in the url must be a whole number from {least} to {most}, not {value!r}",
        )
    return int(value)

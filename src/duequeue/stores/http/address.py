"""Where a server is, and the token for it. The token never shows."""

import os
import re
import ssl
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from duequeue.errors import InvalidArgument, InvalidType
from duequeue.process.own_token import find_own_token
from duequeue.stores.url_parts import split_options

TOKEN_VARIABLE = "DUEQUEUE_TOKEN"  # noqa: S105 - a name
# A token goes into a header, so it must not have a line break or a space in it.
_TOKEN = re.compile(r"[\x21-\x7e]+", re.ASCII)


@dataclass(frozen=True)
class ServerAddress:
    """The parts of `https://host:port/path`, and a token."""

    scheme: str
    host: str
    port: int
    path: str
    token: str | None = field(default=None, repr=False)
    ssl_ca: str | None = None

    @classmethod
    def from_url(cls, url: str, token: str | None) -> "ServerAddress":
        """Parse a URL; without a token, the environment or a server of this user may have one."""
        parts = _split(url)
        if parts.username is not None or parts.password is not None:
            raise InvalidArgument(
                "url", "must not hold a user or password; pass token=, or set " + TOKEN_VARIABLE
            )
        try:
            port = parts.port
        except ValueError:
            raise InvalidArgument(
                "url", "has a port that is not a number from 0 to 65535"
            ) from None
        if not parts.hostname:
            raise InvalidArgument(
                "url", "names no host; write it as http://host:port or https://host"
            )
        _check_host(parts.hostname)
        scheme = parts.scheme.lower()
        port = port or (443 if scheme == "https" else 80)
        if token is None:
            token = os.environ.get(TOKEN_VARIABLE) or find_own_token(parts.hostname, port)
        return cls(
            scheme,
            parts.hostname,
            port,
            parts.path.rstrip("/"),
            _checked(token),
            _authority(scheme, parts.query, parts.fragment),
        )

    @property
    def text(self) -> str:
        """The URL, without the token."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    def tls(self) -> ssl.SSLContext | None:
        """Return what connections of HTTPS need: the trusted authorities."""
        if self.scheme != "https":
            return None
        try:
            return ssl.create_default_context(cafile=self.ssl_ca)
        except OSError as error:
            is_other = isinstance(error, ssl.SSLError)
            words = "it has no certificate" if is_other else error.strerror
            raise InvalidArgument("ssl_ca", f"{self.ssl_ca!r} cannot be read: {words}") from error

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        headers = {"Content-Type": "application/msgpack", "Accept": "application/msgpack"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # such as an IPv6 address without its end
        raise InvalidArgument(
            "url", "cannot be read; write it as http://host:port or https://host"
        ) from None


def _check_host(host: str) -> None:
    try:
        host.encode("idna")
    except UnicodeError:
        raise InvalidArgument("url", "names a host that no name server can know") from None


def _authority(scheme: str, query: str, fragment: str) -> str | None:
    """Return the file that the only option of a URL names."""
    _, options = split_options(f"?{query}")
    authority = options.pop("ssl_ca", None)
    if options or fragment:
        raise InvalidArgument(
            "url", "of a server has only one option, ssl_ca; leave out the others"
        )
    if authority is not None and scheme != "https":
        raise InvalidArgument("url", "has ssl_ca, which is for https://")
    return None if authority is None else unquote(authority)


def _checked(token: str | None) -> str | None:
    if token is None:
        return None
    if not isinstance(token, str):
        raise InvalidType("token", f"must be a str, not {type(token).__name__}")
    if not _TOKEN.fullmatch(token):
        raise InvalidArgument(
            "token", "must be one that `duequeue token create` has printed, without spaces"
        )
    return token

"""Who sends a request, and whether they may."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import urlsplit

from duequeue.process.own_token import LOOPBACK
from duequeue.server.problems import Problem
from duequeue.server.tokens import (
    Grant,
    KnownTokens,
    Scope,
    TokenFile,
    check_token,
    unauthorized,
)

ANYBODY = Grant("", "", frozenset({Scope.ADMIN}), datetime.min.replace(tzinfo=UTC))
_LOOPBACK = frozenset(name.encode() for name in LOOPBACK)
READING = frozenset({"GET", "HEAD", "OPTIONS"})
FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip")


class Access:
    """Checks the token of each request; without tokens, only this machine may call.

    `required` says whether a request without a token is refused, and `trusted` whether somebody
    else has already checked such requests. `hint` tells the refused where to find a token.
    """

    def __init__(
        self,
        tokens: TokenFile | KnownTokens | None,
        *,
        required: bool,
        trusted: bool = False,
        hint: str = "",
    ) -> None:
        self._tokens = tokens
        self._required = required
        self._trusted = trusted
        self._hint = hint

    def grant_for(self, method: str, headers: Mapping[bytes, bytes], client: str | None) -> Grant:
        """Return what the sender of a request may do, or raise; `client` is its address."""
        given = headers.get(b"authorization")
        if given is None or self._tokens is None:
            if self._required:
                raise unauthorized(f"send a token, as in `Authorization: Bearer dq_…`{self._hint}")
            if not self._trusted:
                _refuse_other_machines(headers, client)
                _refuse_web_pages(headers)
            elif method not in READING:  # the app may know its users by their cookies
                _refuse_other_sites(headers)
            return ANYBODY
        kind, _, token = given.decode("latin-1").partition(" ")
        if kind.lower() != "bearer":
            raise unauthorized("the header Authorization must begin with Bearer")
        return check_token(token.strip(), self._tokens, datetime.now(UTC))

    def is_valid(self, grant: Grant) -> bool:
        """Return whether a token may still be used, which a waiting request has to ask again."""
        if self._tokens is None or grant is ANYBODY:
            return True
        try:
            return self._tokens.find(grant.id) == grant and not grant.has_expired(datetime.now(UTC))
        except Problem:  # the file cannot be read
            return False


def check_scope(grant: Grant, scope: Scope, queue: str) -> None:
    """Raise unless a token allows this."""
    if not grant.allows(scope, queue):
        where = f"the queue {queue!r}" if queue else "all queues"
        raise Problem(403, "forbidden", f"the token does not allow {scope.value!r} on {where}")


def _refuse_other_machines(headers: Mapping[bytes, bytes], client: str | None) -> None:
    """Refuse requests of another machine, also those through a proxy on this machine."""
    if client not in LOOPBACK:
        raise Problem(403, "forbidden", "a request from another machine needs a token")
    if any(name in headers for name in FORWARDED):
        raise Problem(403, "forbidden", "a request through a proxy needs a token")


def _refuse_web_pages(headers: Mapping[bytes, bytes]) -> None:
    """Refuse requests that a web page may send from a browser on this machine without a token."""
    if not _is_here(headers.get(b"host", b"")):
        raise Problem(403, "forbidden", "without a token, the host must be localhost or 127.0.0.1")
    _refuse_other_sites(headers)


def _refuse_other_sites(headers: Mapping[bytes, bytes]) -> None:
    """Refuse what a page of another origin, such as another port of this machine, makes a browser
    send.

    Browsers say in `Sec-Fetch-Site` or `Origin` where a request comes from. Other clients send
    neither.
    """
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if site is not None:
        is_own = site in {b"same-origin", b"none"}
    else:
        is_own = (
            origin is None
            or origin.lower().partition(b"://")[2] == headers.get(b"host", b"").lower()
        )
    if not is_own:
        raise Problem(403, "forbidden", "a web page of another site may not do this")


@lru_cache(maxsize=100)
def _is_here(host: bytes) -> bool:
    try:
        return urlsplit(b"//" + host).hostname in _LOOPBACK
    except ValueError:
        return False

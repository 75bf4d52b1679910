"""Tokens: who may do what, on which queues, until when.

A token is `dq_<id>_<secret>`. The file of tokens has the hash of each secret, never the secret
itself. A secret has 256 random bits, so a plain SHA-256 of it cannot be guessed back.
"""

import fcntl
import hashlib
import hmac
import logging
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import Enum
from pathlib import Path
from time import monotonic

import msgspec

from duequeue.errors import InvalidArgument
from duequeue.server.problems import Problem

logger = logging.getLogger("duequeue.server")

MODE = 0o600
# A token that was revoked is refused after this many seconds at the latest.
READ_AGAIN_SECONDS = 1.0
_UNREADABLE = (0, 0, 0)
_TOKEN = re.compile(r"dq_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", re.ASCII)


class Scope(Enum):
    """What a token allows; `admin` includes everything else."""

    OFFER = "offer"
    POLL = "poll"
    SETTLE = "settle"
    READ = "read"
    ADMIN = "admin"


class Grant(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the file says about one token."""

    id: str
    hash: str
    scopes: frozenset[Scope]
    created_at: datetime
    name: str = ""
    prefix: str = ""
    expires_at: datetime | None = None

    def allows(self, scope: Scope, queue: str) -> bool:
        """Return whether its holder may do this on a queue."""
        has_scope = scope in self.scopes or Scope.ADMIN in self.scopes
        return has_scope and queue.startswith(self.prefix)

    def allows_something(self, queue: str) -> bool:
        """Return whether its holder may use a queue at all, and so may know of it."""
        return any(self.allows(scope, queue) for scope in self.scopes)

    def has_expired(self, now: datetime) -> bool:
        """Return whether it is too old."""
        return self.expires_at is not None and self.expires_at <= now


class _File(msgspec.Struct):
    tokens: list[Grant]


def new_token(
    scopes: Iterable[Scope],
    now: datetime,
    *,
    name: str = "",
    prefix: str = "",
    expires_at: datetime | None = None,
) -> tuple[str, Grant]:
    """Draw a random token, and return it with the grant to store."""
    chosen = frozenset(scopes)
    if not chosen:
        raise InvalidArgument("scopes", "must name at least one of: " + ", ".join(_scope_names()))
    identity, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    grant = Grant(identity, _hash(secret), chosen, now, name, prefix, expires_at)
    return f"dq_{identity}_{secret}", grant


def known_grant(token: str, now: datetime) -> Grant | None:
    """Return a grant of everything for a token that was drawn before, if it is one."""
    parts = _TOKEN.fullmatch(token)
    return parts and Grant(parts[1], _hash(parts[2]), frozenset({Scope.ADMIN}), now)


class TokenFile:
    """The tokens in a JSON file that only its owner may read.

    A change replaces the file, so that a server never reads half of one.
    """

    def __init__(self, path: str | Path, clock: Callable[[], float] = monotonic) -> None:
        self.path = Path(path)
        self._clock = clock
        self._read_at = float("-inf")
        self._stamp: tuple[int, int, int] | None = None
        self._grants: dict[str, Grant] | None = {}

    def grants(self) -> list[Grant]:
        """Return every token of the file; none if there is no file."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise self._refused("read", error) from error
        try:
            return msgspec.json.decode(data, type=_File).tokens
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidArgument(
                "token-file", f"{self.path} is not a file of tokens: {error}"
            ) from None

    def add(self, grant: Grant) -> None:
        """Store a token."""
        with self._locked():
            self._replace([*self.grants(), grant])

    def revoke(self, identity: str) -> bool:
        """Remove a token by its id; return whether there was one."""
        with self._locked():
            before = self.grants()
            after = [grant for grant in before if grant.id != identity]
            if len(after) < len(before):
                self._replace(after)
            return len(after) < len(before)

    def find(self, identity: str) -> Grant | None:
        """Return a token by its id, from a copy that is at most a second old."""
        if self._clock() >= self._read_at + READ_AGAIN_SECONDS:
            self._read_at = self._clock()
            self._read_again()
        if self._grants is None:
            raise Problem(503, "unavailable", "the server cannot read its tokens")
        return self._grants.get(identity)

    def _read_again(self) -> None:
        """Read the file if it has changed; nobody has access while it cannot be read."""
        try:
            stamp = self._current_stamp()
            if stamp != self._stamp or stamp is None:
                self._grants = {grant.id: grant for grant in self.grants()}
                self._stamp = stamp
        except (OSError, ValueError) as error:
            logger.error("no token is accepted: %s", error)  # noqa: TRY400 - the place is known
            self._grants, self._stamp = None, _UNREADABLE

    def _current_stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            name = self.path.with_name(f"{self.path.name}.lock")
            lock = os.open(name, os.O_CREAT | os.O_RDWR, MODE)
        except (OSError, ValueError) as error:
            raise self._refused("written", error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _refused(self, use: str, error: OSError | ValueError) -> InvalidArgument:
        words = error.strerror if isinstance(error, OSError) else "it is not the name of a file"
        return InvalidArgument("token-file", f"{self.path} cannot be {use}: {words}")

    def _replace(self, grants: list[Grant]) -> None:
        grants.sort(key=lambda grant: (grant.created_at, grant.id))
        data = msgspec.json.format(msgspec.json.encode(_File(grants)), indent=2)
        draft = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}")
        file = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, MODE)
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(self.path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


class KnownTokens:
    """A few tokens in memory, as a development server has."""

    def __init__(self, grants: Iterable[Grant]) -> None:
        self._grants = {grant.id: grant for grant in grants}

    def find(self, identity: str) -> Grant | None:
        """Return a token by its id."""
        return self._grants.get(identity)


def check_token(token: str, tokens: TokenFile | KnownTokens, now: datetime) -> Grant:
    """Return what a token grants, or raise."""
    parts = _TOKEN.fullmatch(token)
    grant = None if parts is None else tokens.find(parts[1])
    stored = "0" * 64 if grant is None else grant.hash
    # The hashes are compared even if there is no such token, so that the time says nothing.
    matches = hmac.compare_digest(_hash("" if parts is None else parts[2]), stored)
    if grant is None or not matches:
        raise unauthorized("the token is not known here")
    if grant.has_expired(now):
        raise unauthorized("the token has expired")
    return grant


def unauthorized(detail: str) -> Problem:
    """Return the problem of a request without a valid token."""
    headers = {b"www-authenticate": b'Bearer realm="duequeue"'}
    return Problem(401, "unauthorized", detail, headers=headers)


def read_scope(text: str) -> Scope:
    """Return the scope of that name, or raise."""
    try:
        return Scope(text.strip().lower())
    except ValueError:
        raise InvalidArgument(
            "scope", f"must be one of {', '.join(_scope_names())}, not {text!r}"
        ) from None


def _scope_names() -> list[str]:
    return [scope.value for scope in Scope]


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()

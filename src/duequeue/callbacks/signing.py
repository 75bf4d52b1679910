"""Signatures of callbacks as Standard Webhooks 1.0.0 prescribes.

The receiver verifies them with a shared secret (`whsec_…`, HMAC-SHA256, version `v1`) or with the
public key (`whpk_…`) of the sender's secret key (`whsk_…`, ed25519, version `v1a`).
"""

import base64
import binascii
import hashlib
import hmac
import secrets as random_secrets
from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache
from typing import Literal, NoReturn, Protocol

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from duequeue.errors import InvalidArgument, InvalidType
from duequeue.instants import MILLISECOND, span_to_millis

SHARED_PREFIX = "whsec_"
PRIVATE_PREFIX = "whsk_"
PUBLIC_PREFIX = "whpk_"

# What the specification asks of a shared secret, in bytes.
SHORTEST, LONGEST = 24, 64
NEW_SHARED_BYTES = 32
SEED_BYTES = 32

# A header with more signatures than this would be refused by many servers.
MOST_OLDER = 5
LONGEST_OVERLAP = timedelta(days=90)


class Secret(Protocol):
    """A key that signs callbacks; it never shows itself."""

    version: Literal["v1", "v1a"]

    def sign(self, content: bytes) -> bytes:
        """Return the signature of a content."""


class SharedSecret:
    """A secret that the sender and the receiver have in common."""

    version: Literal["v1", "v1a"] = "v1"
    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, content: bytes) -> bytes:
        """Return the HMAC-SHA256 of a content."""
        return hmac.digest(self._key, content, "sha256")

    def __repr__(self) -> str:
        return f"{SHARED_PREFIX}…"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled")


class PrivateKey:
    """A key that only the sender has."""

    version: Literal["v1", "v1a"] = "v1a"
    __slots__ = ("_key",)

    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    def sign(self, content: bytes) -> bytes:
        """Return the ed25519 signature of a content."""
        return self._key.sign(content)

    def public_bytes(self) -> bytes:
        """Return the public half, with which a receiver verifies."""
        return self._key.public_key().public_bytes_raw()

    def __repr__(self) -> str:
        return f"{PRIVATE_PREFIX}…"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled")


def parse_secret(text: str) -> SharedSecret | PrivateKey:
    """Read a secret as people write it; no error repeats it."""
    if not isinstance(text, str):
        raise InvalidType("secret", f"must be a str, not {type(text).__name__}")
    if text.startswith(SHARED_PREFIX):
        return SharedSecret(_shared_key(text.removeprefix(SHARED_PREFIX)))
    if text.startswith(PRIVATE_PREFIX):
        return PrivateKey(_seed(text.removeprefix(PRIVATE_PREFIX)))
    if text.startswith(PUBLIC_PREFIX):
        raise InvalidArgument(
            "secret", f"is a public key; sign with the secret key, {PRIVATE_PREFIX}…"
        )
    raise InvalidArgument("secret", f"must begin with {SHARED_PREFIX} or {PRIVATE_PREFIX}")


def new_secret(kind: Literal["v1", "v1a"] = "v1") -> str:
    """Return a new random secret: a shared one, or a secret key."""
    if kind == "v1":
        return SHARED_PREFIX + _base64(random_secrets.token_bytes(NEW_SHARED_BYTES))
    if kind == "v1a":
        return PRIVATE_PREFIX + _base64(Ed25519PrivateKey.generate().private_bytes_raw())
    raise InvalidArgument("kind", f"must be 'v1' or 'v1a', not {kind!r}")


def public_key(secret: Secret) -> str:
    """Return the public key with which receivers verify the signatures of a secret key."""
    if not isinstance(secret, PrivateKey):
        raise InvalidArgument(
            "secret", f"must be a secret key, {PRIVATE_PREFIX}…; a shared secret has no public key"
        )
    return PUBLIC_PREFIX + _base64(secret.public_bytes())


def signature(secrets: Iterable[Secret], id: str, timestamp: int, body: bytes) -> str:  # noqa: A002
    """Return the value of the header `webhook-signature`.

    While a secret is being replaced, the callback is signed with the old one and the new one, so
    that the receiver may have either.
    """
    if not id or "." in id:
        raise InvalidArgument(
            "id", f"must have at least one character and no full stop, not {id!r}"
        )
    content = b"%b.%d.%b" % (id.encode(), timestamp, body)
    signed = [f"{secret.version},{_base64(secret.sign(content))}" for secret in secrets]
    if not signed:
        raise InvalidArgument("secrets", "must have at least one secret")
    return " ".join(signed)


def _shared_key(text: str) -> bytes:
    key = _from_base64(text)
    if not SHORTEST <= len(key) <= LONGEST:
        raise InvalidArgument(
            "secret", f"must hold {SHORTEST} to {LONGEST} bytes in base64, but it holds {len(key)}"
        )
    return key


def _seed(text: str) -> bytes:
    """Return the seed of a secret key, which some programs write with its public key after it."""
    key = _from_base64(text)
    if len(key) == SEED_BYTES:
        return key
    if len(key) != 2 * SEED_BYTES:
        raise InvalidArgument(
            "secret", f"must hold the 32 or 64 bytes of an ed25519 key, but it holds {len(key)}"
        )
    seed, public = key[:SEED_BYTES], key[SEED_BYTES:]
    if PrivateKey(seed).public_bytes() != public:
        raise InvalidArgument(
            "secret", "must be an ed25519 key, but its public half does not match"
        )
    return seed


def _from_base64(text: str) -> bytes:
    padding = "=" * (-len(text) % 4)
    try:
        return base64.b64decode(text + padding, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise InvalidArgument("secret", "must be base64 after its prefix")


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


class OlderKey(msgspec.Struct, frozen=True):
    """A secret that was replaced, and the instant until which it still signs."""

    text: str
    until: int

    def __repr__(self) -> str:
        return f"<OlderKey until {self.until}>"


class SigningKeys(msgspec.Struct, frozen=True):
    """The secrets of one endpoint; none of them ever shows up in a `repr`."""

    text: str
    older: list[OlderKey] = []

    def __repr__(self) -> str:
        return f"<SigningKeys {fingerprint(self.text)}>"

    def signers(self, now: int) -> list[Secret]:
        """Return the secrets that sign now, the newest first."""
        return [_parsed(self.text), *(_parsed(each.text) for each in self.in_overlap(now))]

    def in_overlap(self, now: int) -> list[OlderKey]:
        """Return the older secrets that still sign."""
        return [each for each in self.older if each.until > now]

    def rotated(self, text: str, overlap: timedelta, now: int) -> "SigningKeys":
        """Return the secrets after a change; the old one still signs for a while."""
        if not timedelta(0) <= overlap <= LONGEST_OVERLAP:
            raise InvalidArgument(
                "overlap", f"must be 0 to {LONGEST_OVERLAP.days} days, not {overlap}"
            )
        parse_secret(text)
        if text == self.text:
            raise InvalidArgument("secret", "must differ from the one that signs now")
        until = now + span_to_millis(overlap, "overlap")
        older = [each for each in self.in_overlap(now) if each.text != text]
        if overlap >= MILLISECOND:
            older = [OlderKey(self.text, until), *older][:MOST_OLDER]
        return SigningKeys(text, older)


def new_keys(text: str) -> SigningKeys:
    """Return the secrets of a new endpoint, or raise if the text is not a secret."""
    parse_secret(text)
    return SigningKeys(text)


def fingerprint(text: str) -> str:
    """Return what distinguishes a secret from others without giving it away."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def public_half(text: str) -> str | None:
    """Return the public key of a secret, if it has one."""
    secret = _parsed(text)
    return public_key(secret) if isinstance(secret, PrivateKey) else None


@lru_cache(maxsize=10_000)
def _parsed(text: str) -> Secret:
    return parse_secret(text)

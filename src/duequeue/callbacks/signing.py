"""Signatures of callbacks as Standard Webhooks 1.0.0 prescribes.

The receiver verifies them with a shared secret (`whsec_…`, HMAC-SHA256, version `v1`) or with the
public key (`whpk_…`) of the sender's secret key (`whsk_…`, ed25519, version `v1a`).
"""

import base64
import binascii
import hmac
import secrets as random_secrets
from collections.abc import Iterable
from typing import Literal, NoReturn, Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from duequeue.errors import InvalidArgument, InvalidType

SHARED_PREFIX = "whsec_"
PRIVATE_PREFIX = "whsk_"
PUBLIC_PREFIX = "whpk_"

# What the specification asks of a shared secret, in bytes.
SHORTEST, LONGEST = 24, 64
NEW_SHARED_BYTES = 32
SEED_BYTES = 32


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

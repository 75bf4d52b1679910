"""The secrets of an endpoint: the one that signs, and older ones that still sign for a while."""

import hashlib
from datetime import timedelta
from functools import lru_cache

import msgspec

from duequeue.callbacks.signing import PrivateKey, Secret, parse_secret, public_key
from duequeue.errors import InvalidArgument
from duequeue.instants import MILLISECOND, span_to_millis

# A header with more signatures than this would be refused by many servers.
MOST_OLDER = 5
LONGEST_OVERLAP = timedelta(days=90)


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

"""Secrets and signatures, judged by the official library."""

import base64
import pickle
from datetime import UTC, datetime

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from duequeue.callbacks.receiver import is_signed
from duequeue.callbacks.signing import new_secret, parse_secret, public_key, signature

ID = "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W"
# The example of the specification's own libraries.
KNOWN = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


def now() -> int:
    """The official library compares with the real time."""
    return int(datetime.now(UTC).timestamp())


def headers(value: str, timestamp: int) -> dict[str, str]:
    """The headers that a receiver verifies."""
    return {"webhook-id": ID, "webhook-timestamp": str(timestamp), "webhook-signature": value}


@given(st.text(), st.binary(min_size=24, max_size=64))
def test_the_official_library_accepts_every_body_and_secret(body: str, key: bytes) -> None:
    text = "whsec_" + base64.b64encode(key).decode()
    data = body.encode("utf-8", "replace")
    timestamp = now()
    value = signature([parse_secret(text)], ID, timestamp, data)
    Webhook(text).verify(data, headers(value, timestamp), json_parse=False)


def test_the_official_library_refuses_another_body() -> None:
    timestamp = now()
    value = signature([parse_secret(KNOWN)], ID, timestamp, b"{}")
    with pytest.raises(WebhookVerificationError):
        Webhook(KNOWN).verify(b"[]", headers(value, timestamp))


def test_a_known_signature() -> None:
    secret = parse_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    identity, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}'
    value = signature([secret], identity, 1614265330, body)
    assert value == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_while_secrets_change_each_receiver_can_verify() -> None:
    old, new, third = new_secret(), new_secret(), new_secret("v1a")
    timestamp = now()
    value = signature(map(parse_secret, (third, new, old)), ID, timestamp, b"{}")
    assert [part.partition(",")[0] for part in value.split(" ")] == ["v1a", "v1", "v1"]
    for secret in (old, new):
        Webhook(secret).verify(b"{}", headers(value, timestamp))


def verified(public: str, value: str, content: bytes) -> None:
    """Verify an ed25519 signature with a public key as it is written."""
    raw = base64.b64decode(public.removeprefix("whpk_"))
    signed = base64.b64decode(value.removeprefix("v1a,"))
    Ed25519PublicKey.from_public_bytes(raw).verify(signed, content)


def test_a_secret_key_signs_for_its_public_key() -> None:
    secret = parse_secret(new_secret("v1a"))
    value = signature([secret], ID, 1_700_000_000, b"\xff\x00 not text")
    verified(public_key(secret), value, ID.encode() + b".1700000000.\xff\x00 not text")
    with pytest.raises(InvalidSignature):
        verified(public_key(secret), value, ID.encode() + b".1700000001.\xff\x00 not text")


def test_a_secret_key_may_carry_its_public_half() -> None:
    text = new_secret("v1a")
    seed = base64.b64decode(text.removeprefix("whsk_"))
    public = base64.b64decode(public_key(parse_secret(text)).removeprefix("whpk_"))
    both = "whsk_" + base64.b64encode(seed + public).decode()
    assert public_key(parse_secret(both)) == public_key(parse_secret(text))
    wrong = "whsk_" + base64.b64encode(seed + seed).decode()
    with pytest.raises(ValueError, match="public half does not match"):
        parse_secret(wrong)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "must begin with whsec_ or whsk_"),
        ("whsec_C2FVsBQIhrscChlQ*MV+b5sSYspob7oD", "base64"),
        ("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7", "24 to 64 bytes"),
        ("whsec_", "24 to 64 bytes"),
        ("whsk_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "32 or 64 bytes"),
        ("whpk_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "public key"),
        ("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDé", "base64"),
    ],
)
def test_a_wrong_secret_is_refused_and_not_repeated(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^secret .*{message}") as caught:
        parse_secret(text)
    assert "C2FVsBQI" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_secret_without_padding_is_the_same_secret() -> None:
    text = "whsec_" + base64.b64encode(bytes(range(25))).decode()
    padded, bare = parse_secret(text), parse_secret(text.rstrip("="))
    assert signature([padded], ID, 1, b"") == signature([bare], ID, 1, b"")


@pytest.mark.parametrize("kind", ["v1", "v1a"])
def test_a_secret_never_shows(kind: str) -> None:
    text = new_secret(kind)  # type: ignore[arg-type]
    secret = parse_secret(text)
    assert repr(secret) == text.partition("_")[0] + "_…"
    assert not hasattr(secret, "__dict__")
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(secret)


def test_new_secrets_differ() -> None:
    assert new_secret() != new_secret()
    assert new_secret("v1a") != new_secret("v1a")
    with pytest.raises(ValueError, match="kind must be 'v1' or 'v1a'"):
        new_secret("v2")  # type: ignore[arg-type]


def test_a_shared_secret_has_no_public_key() -> None:
    with pytest.raises(ValueError, match="secret must be a secret key"):
        public_key(parse_secret(new_secret()))


def test_an_id_cannot_pretend_another_timestamp() -> None:
    secret = parse_secret(new_secret())
    for wrong in ("", "a.b"):
        with pytest.raises(ValueError, match="no full stop"):
            signature([secret], wrong, 1, b"")
    with pytest.raises(ValueError, match="at least one secret"):
        signature([], "id", 1, b"")


@pytest.mark.parametrize(("off_by", "good"), [(0, True), (-290, True), (-310, False), (310, False)])
def test_the_sample_receiver_verifies_like_the_official_library(off_by: int, good: bool) -> None:
    timestamp = now() + off_by
    given = headers(signature([parse_secret(KNOWN)], ID, timestamp, b"{}"), timestamp)
    assert is_signed(KNOWN, given, b"{}") == good
    assert not is_signed(new_secret(), given, b"{}")
    try:
        Webhook(KNOWN).verify(b"{}", given)
    except WebhookVerificationError:
        assert not good
    else:
        assert good


@pytest.mark.parametrize(
    "wrong", ["", "v1", "v1,", "v1,abc", "v1,\N{LATIN SMALL LETTER E WITH ACUTE}"]
)
def test_the_sample_receiver_refuses_what_it_cannot_read(wrong: str) -> None:
    timestamp = now()
    assert not is_signed(KNOWN, headers(wrong, timestamp), b"{}")
    signed = headers(signature([parse_secret(KNOWN)], ID, timestamp, b"{}"), timestamp)
    assert is_signed(KNOWN, signed, b"{}")
    assert not is_signed(KNOWN, {**signed, "webhook-id": f"{ID}.1"}, b"{}")

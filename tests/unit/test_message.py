"""Keys, names and payloads that every store can keep exactly."""

from typing import Any

import pytest

from duequeue import Message, PayloadTooLarge
from duequeue.message import MAX_PAYLOAD_BYTES, checked_key, checked_name, checked_payload


@pytest.mark.parametrize("key", ["k", "k" * 200, " ", "Ä" * 200, "a|b/%_'\"\\", "🙂", "\n"])
def test_good_keys_are_kept_as_they_are(key: str) -> None:
    assert checked_key(key) == key


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("", "1 to 200 characters"),
        ("k" * 201, "not 201"),
        ("a\0b", "NUL"),
        ("ä\0", "NUL"),
        ("\ud800", "not valid Unicode"),
    ],
)
def test_bad_keys(key: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"key.*{reason}"):
        checked_key(key)


@pytest.mark.parametrize("key", [7, None, b"key"])
def test_a_key_is_text(key: Any) -> None:
    with pytest.raises(TypeError, match="key must be a str"):
        checked_key(key)


@pytest.mark.parametrize("name", ["orders", "o" * 100, "two words", "Bücher"])
def test_good_names(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "1 to 100 characters"),
        ("o" * 101, "1 to 100 characters"),
        ("a|b", "must not contain '|'"),
        ("a\0b", "NUL"),
        ("\udfff", "not valid Unicode"),
    ],
)
def test_bad_names(name: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("|", r"\|")):
        checked_name(name)


def test_a_payload_has_a_limit() -> None:
    assert len(checked_payload(bytes(MAX_PAYLOAD_BYTES), "k")) == MAX_PAYLOAD_BYTES
    with pytest.raises(PayloadTooLarge, match="'k' has 8388609 bytes"):
        checked_payload(bytes(MAX_PAYLOAD_BYTES + 1), "k")


def test_a_codec_returns_bytes() -> None:
    text: Any = "text"
    with pytest.raises(TypeError, match=r"codec\.encode must return bytes, not str"):
        checked_payload(text, "k")


def test_a_message_is_a_value() -> None:
    assert Message("k", 1) == Message("k", 1, due=None, replace=True)
    assert len({Message("k", 1), Message("k", 1), Message("k", 2)}) == 2

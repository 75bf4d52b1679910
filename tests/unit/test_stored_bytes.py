"""Payloads that are passed on as they are stored."""

import pytest

from duequeue.payloads.stored_bytes import CheckedBytes, StoredBytes


@pytest.mark.parametrize(("payload_type", "data"), [("json", b"{"), ("text", b"\xff")])
def test_what_the_usual_codec_cannot_decode_is_an_error(payload_type: str, data: bytes) -> None:
    assert StoredBytes(payload_type).decode(data) == data
    with pytest.raises(ValueError, match=r"truncated|UTF-8"):
        CheckedBytes(payload_type).decode(data)


@pytest.mark.parametrize(
    ("payload_type", "data"),
    [("json", b'{"a": 1}'), ("text", "ü".encode()), ("bytes", b"\xff"), ("shop.Order", b"{")],
)
def test_everything_else_is_passed_on(payload_type: str, data: bytes) -> None:
    assert CheckedBytes(payload_type).decode(data) == data

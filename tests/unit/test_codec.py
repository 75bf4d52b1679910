"""Codecs: what goes in comes out, and what cannot come out is an error."""

from dataclasses import dataclass
from datetime import date
from typing import Any

import msgspec
import pytest

from duequeue import BytesCodec, Codec, JsonCodec, TextCodec, TypedCodec
from duequeue.codec import codec_for


@dataclass
class Order:
    number: int
    lines: list[str]


class Invoice(msgspec.Struct):
    number: int
    due: date


@dataclass(frozen=True)
class Shouting:
    """A codec of one's own."""

    type_name: str = "shouting"

    def encode(self, value: str, /) -> bytes:
        return value.upper().encode()

    def decode(self, data: bytes, /) -> str:
        return data.decode()


@pytest.mark.parametrize(
    ("codec", "value", "data"),
    [
        (JsonCodec(), {"b": [1, 2.5, None], "a": True}, b'{"a":true,"b":[1,2.5,null]}'),
        (JsonCodec(), "Grüße", '"Grüße"'.encode()),
        (JsonCodec(), None, b"null"),
        (TextCodec(), "Grüße", "Grüße".encode()),
        (TextCodec(), "", b""),
        (BytesCodec(), b"\0\xff", b"\0\xff"),
        (TypedCodec(Order), Order(7, ["tea"]), b'{"number":7,"lines":["tea"]}'),
        (TypedCodec(Invoice), Invoice(7, date(2026, 3, 1)), b'{"number":7,"due":"2026-03-01"}'),
    ],
)
def test_values_come_back(codec: Codec[Any], value: object, data: bytes) -> None:
    assert codec.encode(value) == data
    assert codec.decode(data) == value


def test_equal_values_are_equal_bytes() -> None:
    encode = JsonCodec().encode
    assert encode({"a": 1, "b": {"c": 2, "d": 3}}) == encode({"b": {"d": 3, "c": 2}, "a": 1})


def test_bytes_of_any_make_are_copied() -> None:
    codec: Codec[Any] = BytesCodec()
    changing = bytearray(b"before")
    data = codec.encode(memoryview(changing))
    changing[:] = b"after!"
    assert data == b"before"


@pytest.mark.parametrize(
    ("codec", "value"),
    [
        (JsonCodec(), object()),
        (TextCodec(), b"bytes"),
        (BytesCodec(), "text"),
        (TypedCodec(Order), {"number": 7, "lines": []}),
        (TypedCodec(Order), Invoice(7, date(2026, 3, 1))),
    ],
)
def test_what_cannot_be_encoded_is_a_type_error(codec: Codec[Any], value: object) -> None:
    with pytest.raises(TypeError):
        codec.encode(value)


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        (JsonCodec(), b"{"),
        (TextCodec(), b"\xff"),
        (TypedCodec(Order), b'{"number":"seven","lines":[]}'),
        (TypedCodec(Order), b'{"number":7}'),
        (TypedCodec(Invoice), b'{"number":7,"due":"yesterday"}'),
    ],
)
def test_what_cannot_be_decoded_is_a_value_error(codec: Codec[Any], data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        codec.decode(data)


@pytest.mark.parametrize(
    ("choice", "type_name"),
    [
        (None, "json"),
        (str, "text"),
        (bytes, "bytes"),
        (Order, "Order"),
        (Invoice, "Invoice"),
        (TextCodec(), "text"),
        (Shouting(), "shouting"),
    ],
)
def test_a_choice_has_its_codec(choice: object, type_name: str) -> None:
    assert codec_for(choice).type_name == type_name


def test_a_codec_is_taken_as_it_is() -> None:
    codec = Shouting()
    assert codec_for(codec) is codec


@pytest.mark.parametrize("choice", [int, dict, object])
def test_a_type_without_fields_is_refused(choice: type) -> None:
    with pytest.raises(TypeError, match="is not a payload type"):
        codec_for(choice)


class Nameless:
    """Almost a codec."""

    encode = decode = staticmethod(bytes)


@pytest.mark.parametrize("choice", ["json", 7, Nameless()])
def test_something_else_is_no_codec(choice: object) -> None:
    with pytest.raises(TypeError, match="codec must have type_name, encode and decode"):
        codec_for(choice)

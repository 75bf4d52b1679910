"""Payloads: what goes in comes out, on every store."""

import string
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, TypedDict

import msgspec
import pytest

from duequeue import (
    BytesCodec,
    Codec,
    JsonCodec,
    Message,
    OfferOutcome,
    TextCodec,
    TypedCodec,
    UndecodablePayload,
)
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import claim, snapshot

JSON_VALUES: list[Any] = [
    None,
    True,
    0,
    -1.5,
    2**53,
    "",
    "null",
    "a\0b \N{FIRE} \N{COMBINING ACUTE ACCENT} \u2028",
    [],
    {},
    {"nested": [{"deep": [None, False, "x"]}]},
    string.printable,
]


@dataclass
class Order:
    """A dataclass payload."""

    number: int
    placed_at: datetime
    lines: list[str] = field(default_factory=list)


class Invoice(msgspec.Struct):
    """A struct payload."""

    total: float
    order: str | None = None


class Refund(NamedTuple):
    """A tuple payload."""

    total: float
    order: str


class Parcel(TypedDict):
    """A dictionary payload."""

    weight: int
    packed_at: datetime


def test_json_values_come_back(queue: QueueFace) -> None:
    for n, value in enumerate(JSON_VALUES):
        queue.offer(str(n), value)
    assert [delivery.payload for delivery in queue.try_poll_many(100)] == JSON_VALUES


@pytest.mark.argument_checks
def test_what_json_cannot_say_is_refused(queue: QueueFace) -> None:
    for value in (float("nan"), float("inf"), [{"deep": -float("inf")}], "\ud800", object()):
        with pytest.raises((ValueError, TypeError)):
            queue.offer("a", value)
    assert queue.stats().total == 0


def test_json_is_the_default(open_queue: OpenQueue) -> None:
    open_queue().offer("a", {"n": 1})
    assert claim(open_queue(codec=JsonCodec())).payload == {"n": 1}


def test_equal_json_objects_are_equal_whatever_their_order(queue: QueueFace) -> None:
    queue.offer("a", {"x": 1, "y": {"p": 1, "q": 2}}, START)
    assert queue.offer("a", {"y": {"q": 2, "p": 1}, "x": 1}, START) is OfferOutcome.IGNORED


def test_text_comes_back(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=str)
    for text in ("", "plain", "a\0b", " \N{FIRE}\r\n ", '{"json": 1}'):
        queue.offer("a", text)
        assert snapshot(queue, "a").payload == text
        delivery = claim(queue)
        assert (delivery.payload, delivery.ack()) == (text, True)


def test_bytes_come_back(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=bytes)
    for data in (b"", bytes(range(256)), b"\0" * 100, b"\xff\xfe", b"\\x41"):
        queue.offer("a", data)
        delivery = claim(queue)
        assert (delivery.payload, type(delivery.payload)) == (data, bytes)
        assert delivery.bury("enough")
        buried = queue.buried(10)[-1]
        assert (buried.payload, buried.raw) == (data, data)


def test_typed_values_come_back_as_their_type(open_queue: OpenQueue) -> None:
    for payload in (Order(7, START, ["pen", "ink"]), Invoice(12.5, "7"), Invoice(0.0)):
        queue = open_queue(codec=type(payload))
        queue.offer("a", payload)
        delivery = claim(queue)
        assert (delivery.payload, type(delivery.payload)) == (payload, type(payload))
        assert delivery.ack()


TYPED: list[tuple[Any, Any]] = [
    (Refund, Refund(2.5, "7")),
    (Parcel, Parcel(weight=3, packed_at=START)),
    (list[Invoice], [Invoice(1.0), Invoice(2.0, "8")]),
    (dict[str, Order], {"a": Order(1, START), "b": Order(2, START, ["pen"])}),
]


@pytest.mark.parametrize(
    ("codec", "payload"), TYPED, ids=["tuple", "dictionary", "list", "mapping"]
)
def test_tuples_dictionaries_and_lists_come_back(
    open_queue: OpenQueue, codec: Any, payload: Any
) -> None:
    queue = open_queue(codec=codec)
    queue.offer("a", payload)
    delivery = claim(queue)
    assert (delivery.payload, type(delivery.payload)) == (payload, type(payload))
    assert delivery.ack()


@pytest.mark.argument_checks
def test_a_wrong_field_is_refused_at_the_offer(open_queue: OpenQueue) -> None:
    wrong: list[tuple[Any, Any, str]] = [
        (Order, Order("seven", START), "number"),  # type: ignore[arg-type]
        (Order, Order(7, START, [1]), "lines"),  # type: ignore[list-item]
        (Invoice, Invoice("dear"), "total"),  # type: ignore[arg-type]
        (Refund, Refund("dear", "7"), r"\$\[0\]"),  # type: ignore[arg-type]
        (Parcel, {"weight": 3}, "packed_at"),
        (list[Invoice], [Invoice(1.0), Invoice("dear")], "total"),  # type: ignore[arg-type]
    ]
    for codec, payload, field_name in wrong:
        queue = open_queue(codec=codec)
        with pytest.raises(ValueError, match=f"payload is not a valid .*{field_name}"):
            queue.offer("a", payload)
        with pytest.raises(ValueError, match=field_name):
            queue.offer_batch([Message("a", payload)])
        assert queue.stats().total == 0


@pytest.mark.argument_checks
def test_a_payload_that_contains_itself_is_refused(queue: QueueFace) -> None:
    endless: dict[str, Any] = {}
    endless["again"] = [endless]
    with pytest.raises(ValueError, match="contains itself"):
        queue.offer("a", endless)
    assert queue.stats().total == 0


def test_a_type_and_its_typed_codec_are_the_same(open_queue: OpenQueue) -> None:
    open_queue(codec=Invoice).offer("a", Invoice(1.0))
    assert claim(open_queue(codec=TypedCodec(Invoice))).payload == Invoice(1.0)


def test_types_do_not_see_each_other(open_queue: OpenQueue) -> None:
    open_queue(codec=Invoice).offer("a", Invoice(1.0))
    assert open_queue(codec=Order).try_poll() is None


@pytest.mark.argument_checks
def test_a_value_of_another_type_is_refused(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=Invoice)
    with pytest.raises(TypeError, match="Invoice"):
        queue.offer("a", Order(1, START))
    assert queue.stats().total == 0


def test_equal_typed_values_are_equal_offers(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=Order)
    queue.offer("a", Order(1, START, ["pen"]), START)
    assert queue.offer("a", Order(1, START, ["pen"]), START) is OfferOutcome.IGNORED
    assert queue.offer("a", Order(1, START, ["ink"]), START) is OfferOutcome.UPDATED


@dataclass
class HexCodec:
    """A codec of the user's own, whose stored bytes another version may not understand."""

    type_name: str = "hex"
    error: BaseException | None = None

    def encode(self, value: int, /) -> bytes:
        return f"{value:x}".encode()

    def decode(self, data: bytes, /) -> int:
        if self.error is not None:
            raise self.error
        return int(data, 16)


def test_a_codec_of_ones_own(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=HexCodec())
    queue.offer("a", 255)
    assert claim(queue).payload == 255


def test_anything_with_the_three_names_is_a_codec() -> None:
    codecs: list[Codec[Any]] = [JsonCodec(), TextCodec(), BytesCodec(), TypedCodec(Order)]
    codecs.append(HexCodec())
    names = [codec.type_name for codec in codecs]
    assert len(set(names)) == len(names)


def test_any_error_out_of_decode_means_undecodable(open_queue: OpenQueue) -> None:
    codec = HexCodec()
    queue = open_queue(codec=codec)
    for codec.error in (ValueError("v"), KeyError("k"), RecursionError("r"), AssertionError("a")):
        queue.offer("a", 255)
        with pytest.raises(UndecodablePayload):
            queue.read("a")
        assert queue.try_poll() is None
        buried = queue.buried(10)[-1]
        assert (buried.payload, buried.raw) == (None, b"ff")
        assert type(codec.error).__name__ in buried.reason or str(codec.error) in buried.reason


def test_the_reason_of_a_burial_does_not_quote_the_payload(open_queue: OpenQueue) -> None:
    class Bytes(BytesCodec):
        type_name = TextCodec.type_name

    open_queue(codec=Bytes()).offer("a", b"secret \xff")
    texts = open_queue(codec=str)
    assert texts.try_poll() is None
    (buried,) = texts.buried(10)
    assert "byte 7 is not UTF-8" in buried.reason
    assert "secret" not in buried.reason


def test_an_error_out_of_encode_is_the_callers(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=HexCodec())
    with pytest.raises(ValueError, match="format"):
        queue.offer("a", "not a number")
    assert queue.stats().total == 0

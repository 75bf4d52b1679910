"""Payload types of Python and of other packages: their names, their bytes, and their errors."""

import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypeVar
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
import typing_extensions
from pydantic import BaseModel, ConfigDict, Field

from duequeue.codec import codec_for

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
T = TypeVar("T")


@attrs.define
class Line:
    article: str
    pieces: int = 1


class Address(BaseModel):
    city: str
    labels: dict[str, int] = {}


class Customer(BaseModel):
    model_config = ConfigDict(strict=True)

    number: UUID
    born: date
    home: Address | None = None
    seen_at: datetime = Field(default=NOON, alias="seenAt")
    paid: float = Field(default=0.0, serialization_alias="Paid", gt=-1)


class Place(NamedTuple):
    x: float
    y: float


class Parcel(typing_extensions.TypedDict):
    weight: int
    note: typing_extensions.NotRequired[str]


@dataclass
class Order:
    number: int
    customer: Address
    lines: list[Line]


@dataclass
class Page(Generic[T]):
    rows: list[T]


BERLIN = Address(city="Berlin", labels={"b": 1, "a": 2})
CUSTOMER = Customer(
    number=UUID(int=7), born=date(1990, 5, 1), home=BERLIN, seenAt=NOON.replace(hour=9), paid=2.5
)

VALUES: list[tuple[Any, Any, str]] = [
    (Line, Line("tea", 2), "Line"),
    (Customer, CUSTOMER, "Customer"),
    (Place, Place(1.5, 2.0), "Place"),
    (Parcel, Parcel(weight=3), "Parcel"),
    (Order, Order(7, BERLIN, [Line("tea")]), "Order"),
    (list[Customer], [CUSTOMER, CUSTOMER], "list[Customer]"),
    (dict[str, Line], {"b": Line("tea"), "a": Line("cup")}, "dict[str, Line]"),
    (list[Line | None], [Line("tea"), None], "list[Line | None]"),
    (list[Optional[Line]], [None], "list[Line | None]"),  # noqa: UP045 - the older way to write it
    (tuple[int, ...], (1, 2), "tuple[int, ...]"),
    (set[int], {1, 2}, "set[int]"),
    (list[Any], [1, "two"], "list[Any]"),
    (list[Literal["a", "b"]], ["a"], "list[Literal['a', 'b']]"),
    (list[Annotated[int, msgspec.Meta(gt=0)]], [1], "list[int]"),
    (list[dict[str, list[Line]]], [{"a": [Line("tea")]}], "list[dict[str, list[Line]]]"),
    (Page[Line], Page([Line("tea")]), "Page[Line]"),
]


@pytest.mark.parametrize(
    ("choice", "value", "type_name"), VALUES, ids=[str(value[0]) for value in VALUES]
)
def test_values_come_back_as_what_they_were(choice: Any, value: Any, type_name: str) -> None:
    codec = codec_for(choice)
    decoded = codec.decode(codec.encode(value))
    assert (decoded, type(decoded)) == (value, type(value))
    assert codec.type_name == type_name


def test_models_are_stored_by_the_names_of_their_fields_in_one_order() -> None:
    codec = codec_for(Address)
    same = Address(city="Berlin", labels={"a": 2, "b": 1})
    assert codec.encode(BERLIN) == codec.encode(same) == b'{"city":"Berlin","labels":{"a":2,"b":1}}'
    assert b'"seen_at":' in codec_for(Customer).encode(CUSTOMER)
    assert b'"paid":' in codec_for(Customer).encode(CUSTOMER)


SECRET = "hunter2"


@pytest.mark.parametrize(
    ("choice", "value", "place"),
    [
        (Line, Line("tea", SECRET), r"\$\.pieces"),  # type: ignore[arg-type]
        (Address, Address.model_construct(city="Berlin", labels={"a": SECRET}), r"labels\.a"),
        (Address, Address.model_construct(labels={}), "city"),
        (Customer, CUSTOMER.model_copy(update={"paid": -5.0}), "paid"),
        (list[Address], [BERLIN, Address.model_construct(city=7)], r"city.*\$\[\d"),
        (Parcel, {"weight": SECRET}, r"\$\.weight"),
        (Parcel, {}, "weight"),
        (Order, Order(7, BERLIN, [Line("tea", SECRET)]), "pieces"),  # type: ignore[arg-type]
        (Order, Order(7, Address.model_construct(), []), r"city.*\$\.customer"),
        (Place, Place(SECRET, 1.0), r"\$\[0\]"),  # type: ignore[arg-type]
        (dict[str, Line], {"a": Line("tea", SECRET)}, "pieces"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_field_is_named_but_its_value_is_not_shown(
    choice: Any, value: Any, place: str
) -> None:
    codec = codec_for(choice)
    with pytest.raises(ValueError, match=f"not a valid .*{place}") as raised:
        codec.encode(value)
    assert SECRET not in str(raised.value)
    assert codec.type_name in str(raised.value)


def test_a_model_that_cannot_be_decoded_does_not_show_its_value() -> None:
    with pytest.raises(ValueError, match="labels") as raised:
        codec_for(Address).decode(b'{"city":"Berlin","labels":"hunter2"}')
    assert SECRET not in repr(raised.value)
    assert SECRET not in repr(raised.value.__cause__)


@pytest.mark.parametrize(
    ("choice", "value", "expected"),
    [
        (Parcel, [], "must be a Parcel, not list"),
        (list[Line], (Line("tea"),), r"must be a list\[Line\], not tuple"),
        (list[Line], Line("tea"), r"must be a list\[Line\], not Line"),
        (Place, (1.5, 2.0), "must be a Place, not tuple"),
        (Address, {"city": "Berlin"}, "must be a Address, not dict"),
    ],
)
def test_another_class_is_a_type_error(choice: Any, value: Any, expected: str) -> None:
    with pytest.raises(TypeError, match=expected):
        codec_for(choice).encode(value)


def test_numbers_that_json_lacks_are_refused_in_models_too() -> None:
    class Rate(BaseModel):
        now: float | None

    with pytest.raises(ValueError, match=r"nan or an infinity|not a valid"):
        codec_for(Rate).encode(Rate(now=float("nan")))


@pytest.mark.parametrize("choice", [int, dict, list, object, Line | None, "Line", BaseModel | int])
def test_something_else_is_not_a_payload_type(choice: object) -> None:
    with pytest.raises(TypeError, match="codec"):
        codec_for(choice)


def test_pydantic_is_not_imported_unless_a_program_does() -> None:
    code = (
        "import sys, dataclasses, duequeue\n"
        "Order = dataclasses.make_dataclass('Order', [('total', int)])\n"
        "with duequeue.Queue.open('memory:', 'orders', codec=list[Order]) as queue:\n"
        "    queue.offer('a', [Order(1)])\n"
        "    print(queue.poll().payload, 'pydantic' in sys.modules, 'attrs' in sys.modules)\n"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert finished.stdout.decode().split() == ["[Order(total=1)]", "False", "False"]


def test_a_dataclass_of_pydantic_is_a_dataclass() -> None:
    @pydantic.dataclasses.dataclass
    class Stamp:
        number: int

    codec = codec_for(Stamp)
    assert codec.decode(codec.encode(Stamp(7))) == Stamp(7)

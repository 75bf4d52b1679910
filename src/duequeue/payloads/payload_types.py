"""Which types can be payloads, and their names in the tables."""

import dataclasses
from types import EllipsisType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from typing_extensions import is_typeddict

from duequeue.payloads.pydantic_models import is_model

_CONTAINERS = (list, dict, tuple, set, frozenset)


def is_payload_type(candidate: object) -> bool:
    """Return whether this is a class with fields, or a container such as `list[Order]`."""
    origin = get_origin(candidate)
    return (
        _has_fields(candidate) if origin is None else origin in _CONTAINERS or _has_fields(origin)
    )


def class_of(payload_type: Any) -> type:
    """Return the class whose instances are the payloads of a type."""
    found: type = get_origin(payload_type) or payload_type
    return dict if is_typeddict(found) else found


def name_of(payload_type: Any) -> str:
    """Return the name of a type as people write it, without its module."""
    origin, arguments = get_origin(payload_type), get_args(payload_type)
    if origin is None:
        return _plain_name(payload_type)
    if origin is Annotated:
        return name_of(arguments[0])
    if origin is Union or origin is UnionType:
        return " | ".join(map(name_of, arguments))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    return f"{_plain_name(origin)}[{', '.join(map(name_of, arguments))}]"


def _plain_name(payload_type: Any) -> str:
    if payload_type is NoneType:
        return "None"
    if isinstance(payload_type, EllipsisType):
        return "..."
    if isinstance(payload_type, type):
        return payload_type.__qualname__
    return str(payload_type).removeprefix("typing.")


def _has_fields(candidate: object) -> bool:
    if not isinstance(candidate, type):
        return False
    return (
        dataclasses.is_dataclass(candidate)
        or issubclass(candidate, msgspec.Struct)
        or hasattr(candidate, "__attrs_attrs__")
        or (issubclass(candidate, tuple) and hasattr(candidate, "_fields"))
        or is_typeddict(candidate)
        or is_model(candidate)
    )

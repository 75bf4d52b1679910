"""Pydantic models as JSON, by the names of their fields; this module never imports pydantic."""

import sys
from typing import Any

import msgspec


def is_model(candidate: object) -> bool:
    """Return whether this is the class of a pydantic 2 model."""
    # Such a class exists only if somebody has imported pydantic.
    pydantic = sys.modules.get("pydantic")
    return (
        pydantic is not None
        and isinstance(candidate, type)
        and issubclass(candidate, pydantic.BaseModel)
        and hasattr(candidate, "model_validate_json")
    )


def dump_model(value: Any) -> object:
    """Return a model as JSON values, or raise for anything else."""
    if not is_model(type(value)):
        raise TypeError(f"there is no JSON for an object of type {type(value).__name__}")
    # The check of the payload refuses a wrong field, so a warning about it is not needed.
    return value.model_dump(mode="json", by_alias=False, round_trip=True, warnings=False)


def load_model(payload_type: Any, value: object) -> object:
    """Return JSON values as a model, or raise for another type."""
    if not is_model(payload_type):
        raise TypeError(f"a {payload_type.__name__} cannot be read from JSON")
    try:
        # Only JSON text lets a strict model take a date or a UUID from a string.
        return payload_type.model_validate_json(
            msgspec.json.encode(value), by_alias=False, by_name=True
        )
    except ValueError as error:
        # The error of pydantic quotes the payload, which must not reach logs.
        raise ValueError(_without_values(error)) from None


def _without_values(error: Any) -> str:
    if not hasattr(error, "errors"):
        return type(error).__name__
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(_one_fault(fault) for fault in found)


def _one_fault(fault: dict[str, Any]) -> str:
    place = ".".join(map(str, fault["loc"]))
    return f"{place}: {fault['msg']}" if place else str(fault["msg"])

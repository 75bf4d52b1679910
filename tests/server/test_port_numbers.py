"""Numbers that no store can keep, in every integer argument of every operation of the port."""

from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass, replace
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

from duequeue.port.remote import OPERATIONS, Call, encode
from duequeue.server import app_for
from duequeue.server.dev_clock import DevClock
from tests.fixtures.stores import fresh_url
from tests.server.served import served
from tests.server.test_port_scopes import DATABASE, TABLE

FORBIDDEN, INVALID, FAILED = 403, 422, 500
TOO_LARGE = (2**63 + 1, 2**64 - 1)  # 2**63 itself may be the exclusive end of a selection
STRANGE = (0, -1, 2**31, -(2**31) - 1, 2**53, -(2**53), 2**63 - 1, 2**63, -(2**63))


@pytest.fixture(params=["memory", "sqlite", "postgres", "mariadb", "redis"])
def url(request: pytest.FixtureRequest) -> str:
    return fresh_url(request.param, request)


@pytest.mark.parametrize("dev", [False, True], ids=["", "dev"])
def test_a_number_that_no_store_can_keep_is_refused_with_its_name(url: str, *, dev: bool) -> None:
    service = app_for(url, clock=DevClock()) if dev else app_for(url)
    with served(service) as server, server.client() as http:
        for number in (*TOO_LARGE, *STRANGE):
            for operation, names, arguments in calls_with(number):
                queue = "" if operation in DATABASE else "orders"
                call = Call(operation, msgspec.Raw(encode(arguments)), queue, "json")
                answer = http.post("/v1/port:call", content=encode(call))
                told = (operation, names, number, answer.text)
                assert answer.status_code != FAILED, told
                if number in TOO_LARGE and answer.status_code != FORBIDDEN:
                    assert answer.status_code == INVALID, told
                    assert answer.json()["argument"] in names, told


def calls_with(number: int) -> Iterator[tuple[str, set[str], list[Any]]]:
    """Yield each operation with each of its integers replaced by a number, which has two names.

    They are its own, and that of the argument of which it is a part.
    """
    for name, operation in OPERATIONS.items():
        parameters = list(operation.signature.parameters.values())
        given = TABLE[name][0]
        for place, (parameter, value) in enumerate(zip(parameters, given, strict=True)):
            for part, changed in replaced(parameter.annotation, parameter.name, value, number):
                yield name, {parameter.name, part}, [*given[:place], changed, *given[place + 1 :]]


def replaced(kind: Any, name: str, value: Any, number: int) -> Iterator[tuple[str, Any]]:
    """Yield a value of this type once for each integer that it can hold, which is replaced."""
    for each in choices(kind):
        if each is int:
            yield name, number
        elif get_origin(each) is Sequence:
            (of,) = get_args(each)
            first = value[0] if value else smallest(of)
            yield from ((part, [new]) for part, new in replaced(of, name, first, number))
        elif is_record(each):
            whole = smallest(each) if value is None else value
            for field, hint in get_type_hints(each).items():
                for part, new in replaced(hint, field, getattr(whole, field), number):
                    changes = {field: new}
                    yield (
                        part,
                        (
                            replace(whole, **changes)
                            if is_dataclass(each)
                            else whole._replace(**changes)
                        ),
                    )


def smallest(kind: Any) -> Any:
    """Return a value of this type."""
    (kind, *_) = choices(kind)
    if is_record(kind):
        return kind(*map(smallest, get_type_hints(kind).values()))
    return [] if get_origin(kind) is Sequence else kind("x") if kind is str else kind()


def choices(kind: Any) -> Sequence[Any]:
    """Return the types that a type stands for, without None."""
    is_union = get_args(kind) and get_origin(kind) is not Sequence
    return [each for each in get_args(kind) if each is not type(None)] if is_union else [kind]


def is_record(kind: Any) -> bool:
    return hasattr(kind, "_fields") or is_dataclass(kind)

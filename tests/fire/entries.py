"""The lines of a log: calls, answers, and notes of what else happened.

Instants are microseconds of CLOCK_MONOTONIC, which all processes of a machine share. A `clock` is
the injected clock of the actor that made the call, in milliseconds since 1970.
"""

from typing import Any, TypeAlias

import msgspec


class Call(msgspec.Struct, omit_defaults=True):
    """What an actor asked of its queue; each kind of call uses some of the fields."""

    do: str
    key: str = ""
    payload: str = ""
    due: int = 0
    replace: bool = True
    items: list["Call"] = []
    limit: int = 1
    timeout: float = 0.0
    delivery: str = ""
    deliveries: list[str] = []
    delay: int = 0
    received: "Delivered | None" = None
    facts: dict[str, Any] = {}

    def __str__(self) -> str:
        given: dict[str, Any] = msgspec.to_builtins(self)
        return " ".join(f"{name}={value}" for name, value in given.items() if name != "do")


class Delivered(msgspec.Struct):
    """A delivery as its receiver saw it; `id` names it in later calls."""

    id: str
    key: str
    payload: str
    due: int
    attempt: int
    at: int
    until: int


class Invoked(msgspec.Struct, tag="call"):
    """A call begins."""

    number: int
    actor: str
    queue: str
    at: int
    clock: int
    call: Call


class Answered(msgspec.Struct, tag="answer", omit_defaults=True):
    """A call ends, with an answer or an error."""

    number: int
    at: int
    clock: int
    answer: Any = None
    error: str = ""


class Noted(msgspec.Struct, tag="note", omit_defaults=True):
    """Something else happens, such as a fault, a moved clock or a stall of the process."""

    event: str
    at: int
    actor: str = ""
    facts: dict[str, Any] = {}


Entry: TypeAlias = Invoked | Answered | Noted

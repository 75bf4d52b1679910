"""The operations of the port as calls over a network: their arguments and results on the wire.

Both ends derive the types from the signatures of the port. A call names one operation and has its
arguments in order. Everything is msgpack; a named tuple is an array.
"""

import inspect
from collections.abc import Callable, Generator
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from duequeue.instants import EARLIEST, LATEST
from duequeue.port.burial_table import BurialTable, StoredBurial
from duequeue.port.cron_table import CronTable
from duequeue.port.examining import Examinable, Finding
from duequeue.port.history_table import HistoryTable
from duequeue.port.store import Backend, Steps, Store, StoredMessage

T = TypeVar("T")

# The number changes when servers and clients of different versions would misunderstand each other.
VERSION = 2


class Call(msgspec.Struct, array_like=True):
    """One operation on the store of a queue, or on the whole database if the queue is empty.

    `sweep_interval` and `history` are what the client opened the queue with. `sender` is the
    client's own name, under which it is not woken by what it did itself. `seconds` is how long the
    operation may take, and `sent_at` when the call was sent by the client's clock.
    """

    operation: str
    arguments: msgspec.Raw
    queue: str = ""
    type_name: str = ""
    sweep_interval: int = 0
    history: bool = False
    sender: str = ""
    seconds: float | None = None
    consumes: bool = False
    version: int = VERSION
    sent_at: Annotated[int, msgspec.Meta(ge=EARLIEST, le=LATEST)] | None = None


class WakeUpCall(msgspec.Struct, array_like=True):
    """A wait for the next wake-up of a queue, after those that the client has heard of.

    `source` and `heard` are what the last answer said.
    """

    queue: str
    type_name: str
    sender: str
    seconds: float
    source: str = ""
    heard: int = 0
    version: int = VERSION


class WakeUp(msgspec.Struct, array_like=True):
    """Whether there was a wake-up, and the earliest due time, which may not be known.

    `answered` has the keys of new responses. Only those who wait for these keys need to look.
    """

    source: str
    heard: int
    rang: bool
    due_at: int | None = None
    answered: list[str] = []


class FoundMessage(NamedTuple):
    """What `read` finds, since a type on the wire cannot be one of two tuples."""

    live: StoredMessage | None
    buried: StoredBurial | None

    @classmethod
    def of(cls, found: StoredMessage | StoredBurial | None) -> "FoundMessage":
        """Convert a result of `read` to this form."""
        if isinstance(found, StoredBurial):
            return cls(None, found)
        return cls(found, None)

    @property
    def message(self) -> StoredMessage | StoredBurial | None:
        """What was found."""
        return self.live or self.buried


class Examination(NamedTuple):
    """What `examine` finds, and the clock of the server, in milliseconds since the epoch."""

    now: int
    findings: list[Finding]


class Operation(NamedTuple):
    """One operation: its signature, and how its arguments and its result are read."""

    signature: inspect.Signature
    arguments: "msgspec.msgpack.Decoder[tuple[Any, ...]]"
    result: "msgspec.msgpack.Decoder[Any]"

    def positional(self, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Return all arguments of a call, in order."""
        bound = self.signature.bind(*given, **named)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def call(self, method: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        """Call a method with arguments that came over the network."""
        each = zip(self.signature.parameters.values(), arguments, strict=True)
        named = {about.name: value for about, value in each if about.kind is about.KEYWORD_ONLY}
        return method(*arguments[: len(arguments) - len(named)], **named)


def _operation(method: Callable[..., Any], result: Any = None) -> Operation:
    hints = get_type_hints(method)
    signature = inspect.signature(method)
    parameters = [each for each in signature.parameters.values() if each.name != "self"]
    types = tuple(hints[each.name] for each in parameters)
    arguments: Any = tuple[types] if types else tuple[()]  # type: ignore[valid-type]
    returned = get_args(hints["return"])[2] if result is None else result
    return Operation(
        signature.replace(parameters=parameters),
        msgspec.msgpack.Decoder(arguments),
        msgspec.msgpack.Decoder(returned),
    )


def _operations(protocol: type, prefix: str, special: dict[str, Any]) -> dict[str, Operation]:
    """Return every operation of a protocol, that is, every method that returns steps."""
    return {
        f"{prefix}{name}": _operation(method, special.get(name))
        for name, method in vars(protocol).items()
        if inspect.isfunction(method) and _returns_steps(method)
    }


def _returns_steps(method: Callable[..., Any]) -> bool:
    returned = inspect.get_annotations(method, eval_str=True).get("return")
    return get_origin(returned) is Generator


def open_store(migrate: bool) -> Steps[None]:  # noqa: FBT001 - it is written on the wire
    """Open the store of the queue; the server knows the rest from the call."""
    raise NotImplementedError(migrate)


STORE = _operations(Store, "", {"read": FoundMessage})
BURIALS = _operations(BurialTable, "burials.", {})
CRON = _operations(CronTable, "cron.", {})
HISTORY = _operations(HistoryTable, "history.", {})
OPEN = _operation(open_store)
COUNT_TYPES = _operation(Backend.count_types)
KINDS = _operation(Backend.kinds)
EXAMINE = _operation(Examinable.examine, Examination)

OPERATIONS = {
    **STORE,
    **BURIALS,
    **CRON,
    **HISTORY,
    "open": OPEN,
    "count_types": COUNT_TYPES,
    "kinds": KINDS,
    "examine": EXAMINE,
}

# These are not about one queue.
OF_DATABASE = frozenset({*HISTORY, "kinds", "examine"})

encode = msgspec.msgpack.Encoder().encode

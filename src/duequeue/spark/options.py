"""The options of `format("duequeue")`, checked once."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from duequeue.bulk import bulk_backend_for
from duequeue.defaults import LEASE
from duequeue.durations import parse_duration
from duequeue.errors import InvalidArgument, InvalidType
from duequeue.instants import MILLISECOND, positive_millis
from duequeue.message import checked_name, checked_type_name

_MOST = 2**31 - 1
_NESTED = re.compile(r"(?:struct|map|array)\s*<|variant$", re.IGNORECASE)
_COLUMN = re.compile(r"(?:\w+|`.+`)\s*[\s:]\s*\w")
_INSTEAD = "CREATE TEMPORARY VIEW … USING duequeue OPTIONS (url '…', queue '…')"
_AS_A_TABLE = (
    "a queue cannot be a table of the catalog, because Spark does not keep the options of such a "
    f"table: use {_INSTEAD}"
)
_NO_OPTIONS = (
    "the options 'url' and 'queue' are missing: add .options(url=…, queue=…). Spark does not keep "
    f"the options of a table: use {_INSTEAD}, or spark.read.options(url=…, queue=…).table(…)"
)
# Spark itself reads these options, and passes them on.
_SPARKS_OWN = {"checkpointlocation"}


@dataclass(frozen=True)
class Options:
    """The options of a reader or a writer, with durations in milliseconds.

    The URL is not in the repr, because it may hold a password.
    """

    url: str = field(repr=False)
    queue: str
    codec: str = "json"
    payload_type: str = "string"
    payload_schema: str | None = None
    payload_mode: str = "failfast"
    mode: str = "upsert"
    num_partitions: int | None = None
    batch_size: int | None = None
    lease: int = LEASE // MILLISECOND
    max_messages_per_trigger: int = 100_000
    min_messages_per_trigger: int = 1
    max_trigger_delay: int = 900_000
    max_connections: int | None = None
    snapshot_timeout: int = 600_000
    fail_on_snapshot_loss: bool = True
    consumer_id: str | None = None
    txn_app_id: str | None = None
    run_id: str | None = None
    any_payload: bool = False
    history: bool = False
    include_future: bool = False
    migrate: bool = True

    @property
    def kind(self) -> str:
        """The kind of message, in the form that `Queue.open` gives it."""
        return f"{self.queue}|{self.codec}"

    @property
    def permissive(self) -> bool:
        """Whether a payload that does not fit its column is read as null."""
        return self.payload_mode == "permissive"

    @property
    def only_json(self) -> bool:
        """Whether payloads that are not JSON are refused."""
        return self.codec == "json" and not self.any_payload


def parse(given: Mapping[str, object]) -> Options:
    """Check the options that Spark was given, whose names ignore case, and return them."""
    known = {name.lower(): name for name in _OPTIONS}
    given = {name: value for name, value in given.items() if name.lower() not in _SPARKS_OWN}
    if "provider" in given or not given:
        raise InvalidArgument("options", text=_AS_A_TABLE if given else _NO_OPTIONS)
    for name in given:
        if name.lower() not in known:
            near = get_close_matches(name.lower(), known, n=1, cutoff=0)
            raise _refused(
                name,
                f"is unknown; did you mean {known[near[0]]!r}? "
                f"The known options are: {', '.join(_OPTIONS)}",
            )
    values = {known[name.lower()]: _as_text(name, value) for name, value in given.items()}
    for name in ("url", "queue"):
        if not values.get(name):
            raise _refused(name, f"is missing: add .option({name!r}, …)")
    parsed = {_field(name): _OPTIONS[name](name, value) for name, value in values.items()}
    if "payload_type" not in parsed and parsed.get("codec") == "bytes":
        parsed["payload_type"] = "binary"
    if "max_connections" in parsed and bulk_backend_for(parsed["url"]).is_pooled:
        raise _refused(
            "maxConnections",
            "cannot be used behind a pooler, because the connections are "
            "the pooler's: limit them there",
        )
    return Options(**parsed)


def _refused(name: str, words: str) -> InvalidArgument:
    return InvalidArgument(name, text=f"option {name!r} {words}")


def _as_text(name: str, value: object) -> str:
    """Return a value in the form in which Spark passes it on."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int):
        return str(value)
    raise InvalidType(
        name, text=f"option {name!r} must be a str, an int or a bool, not {type(value).__name__}"
    )


def _field(name: str) -> str:
    return re.sub(r"([A-Z])", r"_\1", name).lower()


def _text(name: str, value: str) -> str:
    if not 1 <= len(value) <= 200 or "\0" in value:  # noqa: PLR2004 - as a key
        raise _refused(name, "must have 1 to 200 characters, none of them NUL")
    return value


def _queue(_: str, value: str) -> str:
    return checked_name(value)


def _codec(_: str, value: str) -> str:
    return checked_type_name(value)


def _url(_: str, value: str) -> str:
    bulk_backend_for(value)  # connects to nothing, but raises if the URL is wrong
    return value


def _number(name: str, value: str) -> int:
    if not value.isdecimal() or not 1 <= int(value) <= _MOST:
        raise _refused(name, f"must be a whole number above 0, not {value!r}")
    return int(value)


def _span(name: str, value: str) -> int:
    try:
        return positive_millis(parse_duration(value), name)
    except InvalidArgument as error:
        raise InvalidArgument(name, text=f"option {name!r}: {error}") from None


def _one_of(*choices: str) -> Callable[[str, str], str]:
    def check(name: str, value: str) -> str:
        if value.lower() not in choices:
            raise _refused(name, f"must be {' or '.join(choices)}, not {value!r}")
        return value.lower()

    return check


def _payload_schema(name: str, value: str) -> str:
    """Return a type of Spark; a list of columns becomes a struct."""
    text = value.strip()
    if _NESTED.match(text):
        return text
    if not _COLUMN.match(text):
        raise _refused(
            name,
            f"must list columns such as 'id bigint, mail string', or be a "
            f"struct<…>, a map<…>, an array<…> or variant, not {value!r}",
        )
    return f"struct<{text}>"


def _flag(name: str, value: str) -> bool:
    return _one_of("true", "false")(name, value) == "true"


_OPTIONS: dict[str, Callable[[str, str], Any]] = {
    "url": _url,
    "queue": _queue,
    "codec": _codec,
    "payloadType": _one_of("string", "binary"),
    "payloadSchema": _payload_schema,
    "payloadMode": _one_of("failfast", "permissive"),
    "mode": _one_of("upsert", "ignore"),
    "numPartitions": _number,
    "batchSize": _number,
    "lease": _span,
    "maxMessagesPerTrigger": _number,
    "minMessagesPerTrigger": _number,
    "maxTriggerDelay": _span,
    "maxConnections": _number,
    "snapshotTimeout": _span,
    "failOnSnapshotLoss": _flag,
    "consumerId": _text,
    "txnAppId": _text,
    "runId": _text,
    "anyPayload": _flag,
    "history": _flag,
    "includeFuture": _flag,
    "migrate": _flag,
}

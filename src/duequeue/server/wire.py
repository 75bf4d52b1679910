"""The bodies of requests and answers; the OpenAPI document is made from the same types."""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from duequeue.defaults import LONGEST_HISTORY, LONGEST_PAGE
from duequeue.durations import Duration
from duequeue.instants import InstantText
from duequeue.message import MAX_KEY_LENGTH, QueueNameText
from duequeue.server.times import Instant

Key: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=MAX_KEY_LENGTH, pattern=r"^[^\x00]*$")
]
QueueName: TypeAlias = QueueNameText
Outcome: TypeAlias = Literal["created", "updated", "ignored"]
OperationState: TypeAlias = Literal["running", "done", "cancelled", "failed"]
LiveState: TypeAlias = Literal["future", "due", "leased"]
Verdict: TypeAlias = Literal["won", "lost"]
Base64: TypeAlias = Annotated[str, Meta(extra_json_schema={"contentEncoding": "base64"})]
EndpointId: TypeAlias = Annotated[
    str,
    Meta(min_length=1, max_length=180, pattern=r"^([^\x00|]*/)?[A-Za-z0-9][A-Za-z0-9._-]{0,98}$"),
]
CronName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=99, pattern=r"^[^\x00\x1f]*$")]
MOST_HOURS = 24 * 366
Hours: TypeAlias = Annotated[int, Meta(ge=1, le=MOST_HOURS)]
HistoryLength: TypeAlias = Annotated[int, Meta(ge=1, le=LONGEST_HISTORY)]
TickCount: TypeAlias = Annotated[int, Meta(ge=1, le=LONGEST_PAGE)]
Token: TypeAlias = Annotated[str, Meta(min_length=1, max_length=4096)]


class Request(Struct, forbid_unknown_fields=True):
    """The body of a request, in which a misspelt field is an error."""


class OfferedMessage(Request):
    """A message to offer, due at `due_at`, after `delay`, or now.

    `expires` is an instant or a time from now, from which it is dropped instead of delivered.
    """

    key: Key
    payload: Any = UNSET
    payload_b64: Base64 | UnsetType = UNSET
    due_at: Instant | None = None
    delay: Duration | None = None
    replace: bool = True
    headers: dict[str, str] | None = None
    expires: Duration | None = None


class Offered(Struct, omit_defaults=True):
    """What became of one offer, or of several in their order."""

    outcome: Outcome | UnsetType = UNSET
    outcomes: list[Outcome] | UnsetType = UNSET


class Reschedule(Request):
    """Another due time of a message: exactly one of the two."""

    due_at: Instant | None = None
    delay: Duration | None = None


class Rescheduled(Struct):
    """The message has another due time."""

    rescheduled: bool


class Dropped(Struct):
    """How many messages were deleted."""

    dropped: int


class StoredMessage(Struct, omit_defaults=True):
    """A message as the queue has it; `due_at` is what its producer asked for.

    `deliver_at` is when polls may deliver it, which differs after a release with a delay.
    """

    key: str
    due_at: InstantText
    state: Literal["future", "due", "leased", "buried"]
    attempts: int
    headers: dict[str, str]
    payload: Raw | UnsetType = UNSET
    payload_b64: Base64 | UnsetType = UNSET
    deliver_at: InstantText | None = None
    leased_until: InstantText | None = None
    expires_at: InstantText | None = None
    reason: str | None = None


class MessagePage(Struct):
    """Some messages in due order; `next` is the cursor of the next page."""

    messages: list[StoredMessage]
    next: str | None


class Extension(Request):
    """A lease to extend; without `lease`, for the queue's own time."""

    token: Token
    lease: Duration | None = None


class Return(Request):
    """A message to release, which is due again after a delay."""

    token: Token
    delay: Duration = 0


class Reply(Request):
    """A message to ack with a response, which is kept for an hour unless `keep` says otherwise."""

    token: Token
    value: Any = None
    keep: Duration | None = None


class Burial(Request):
    """A message to bury, and why."""

    token: Token
    reason: str = ""


class Settlement(Request):
    """What to do with deliveries; each token may be named once."""

    ack: list[Token] = []
    response: list[Reply] = []
    extend: list[Extension] = []
    release: list[Return] = []
    bury: list[Burial] = []


class Settled(Struct):
    """For each token, whether its lease still held, so that the call took effect."""

    settled: dict[str, Verdict]


class Poll(Request):
    """Lease up to `limit` messages, and wait for the first up to `wait`; settle others first.

    The payloads have at most `max_bytes` together, but one message comes whatever its length.
    """

    limit: int = 1
    wait: Duration | None = None
    lease: Duration | None = None
    max_bytes: Annotated[int, Meta(ge=1)] | None = None
    settle: Settlement | None = None


class Delivery(Struct, omit_defaults=True, gc=False):
    """A leased message; its token settles it."""

    key: str
    token: str
    attempt: int
    redelivered: bool
    due_at: InstantText
    delivered_at: InstantText
    lease_until: InstantText
    headers: dict[str, str]
    payload: Raw | UnsetType = UNSET
    payload_b64: Base64 | UnsetType = UNSET
    expires_at: InstantText | None = None


class Polled(Struct):
    """The leased messages, earliest due first, or an empty list; and what became of others."""

    deliveries: list[Delivery]
    settled: dict[str, Verdict]


class MessageResponse(Struct, omit_defaults=True):
    """What a consumer has answered to a message; `value_b64` if it is not JSON."""

    key: str
    responded_at: InstantText
    value: Raw | UnsetType = UNSET
    value_b64: Base64 | UnsetType = UNSET


class BuriedMessage(Struct, omit_defaults=True):
    """A buried message; `id` distinguishes the burials of one key."""

    id: str
    key: str
    due_at: InstantText
    attempts: int
    reason: str
    buried_at: InstantText
    headers: dict[str, str]
    payload: Raw | UnsetType = UNSET
    payload_b64: Base64 | UnsetType = UNSET


class BuriedPage(Struct):
    """Some burials, oldest first; `next` is the cursor of the next page."""

    messages: list[BuriedMessage]
    next: str | None


class BurialName(Request):
    """One burial of a key; without an id, the newest."""

    key: Key
    id: str | None = None


class Revive(Request):
    """Which burials to put back, by key or by a text in their reason, and for when.

    An empty `reason` is in every reason.
    """

    keys: list[Key | BurialName] | None = None
    reason: str | None = None
    due_at: Instant | None = None
    delay: Duration | None = None


class Revived(Struct):
    """How many burials were put back."""

    revived: int


class Purge(Request):
    """Which burials to delete, by id or by age."""

    ids: list[str] | None = None
    before: Instant | None = None


class Purged(Struct):
    """How many burials were deleted."""

    purged: int


class QueueAndType(Struct):
    """A queue that the database has."""

    name: str
    type: str


class QueueList(Struct):
    """The queues that the token may use."""

    queues: list[QueueAndType]


class Stats(Struct):
    """How many messages are in which state, at one instant."""

    name: str
    type: str
    total: int
    due: int
    leased: int
    future: int
    buried: int
    oldest_due_at: InstantText | None
    next_due_at: InstantText | None


class Bucket(Struct):
    """The messages that fall due in a span of time; `overdue` of them already have."""

    begins_at: InstantText
    messages: int
    overdue: int


class Forecast(Struct):
    """What falls due ahead, in buckets of equal length; those without messages are left out."""

    now: InstantText
    until: InstantText
    bucket_seconds: float
    buckets: list[Bucket]


class SettledMessage(Struct):
    """A message that left the queue."""

    key: str
    due_at: InstantText
    delivered_at: InstantText | None
    settled_at: InstantText
    attempts: int
    outcome: str
    lateness_seconds: float | None
    handler_seconds: float | None


class HistoryPage(Struct):
    """Settled messages, the newest first."""

    messages: list[SettledMessage]


class CronDefinition(Request):
    """A cron: exactly one of `expression`, `every` and `daily` says when it ticks.

    `misfire` is "skip", "fire_once", or how many missed ticks are made up for.
    """

    queue: QueueName
    expression: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    every: Duration | None = None
    daily: list[str] | None = None
    weekdays: list[str] | None = None
    zone: str = "UTC"
    payload: Any = None
    headers: dict[str, str] | None = None
    misfire: Literal["skip", "fire_once"] | int = "skip"
    jitter: Duration | None = None
    until: Instant | None = None


class CronStatus(Struct):
    """An installed cron, whether it was installed over HTTP or by a program."""

    name: str
    queue: str
    schedule: str
    paused: bool
    next_tick: InstantText | None
    last_tick: InstantText | None
    generation: int
    defined_here: bool


class CronList(Struct):
    """The installed crons."""

    crons: list[CronStatus]


class NextTicks(Struct):
    """When a cron ticks next, in a zone."""

    ticks: list[InstantText]


class Changed(Struct):
    """Whether the call changed anything."""

    changed: bool


class OperationStatus(Struct):
    """A background operation of this server process."""

    id: str
    queue: str
    action: str
    state: OperationState
    done: int
    started_at: InstantText
    ended_at: InstantText | None
    error: str | None


class OperationList(Struct):
    """The background operations that the token may see."""

    operations: list[OperationStatus]


class Health(Struct):
    """Whether the server works."""

    status: Literal["ok", "stopping", "unavailable"]
    detail: str = ""


class ClockMove(Request):
    """By how much the clock of a development server moves ahead."""

    by: Duration


class ClockTime(Struct):
    """What the clock shows."""

    now: InstantText

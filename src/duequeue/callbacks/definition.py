"""What an endpoint is defined by: its fields, limits, defaults and help, for every door."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from duequeue import defaults
from duequeue.durations import Duration, duration_text
from duequeue.instants import InstantText
from duequeue.message import MAX_TYPE_NAME_LENGTH, QueueNameText

LONGEST_URL = 2000
LONGEST_REASON = 1000
MOST_CALLS = 10_000
MOST_ATTEMPTS = 1_000

_FIRST, _LONGEST, _FACTOR = defaults.CALL_BACKOFF.split(":")


class Delays(Struct, forbid_unknown_fields=True):
    """The delays between attempts: the first, the longest, and the factor by which they grow."""

    first: Duration = _FIRST
    longest: Duration = _LONGEST
    factor: Annotated[float, Meta(ge=1, le=1_000_000)] = float(_FACTOR)


class EndpointDefinition(Struct, forbid_unknown_fields=True):
    """Where the messages of a queue are posted to.

    What a change leaves out goes back to its default. Only the secret and `default` stay as they
    are. `rate` is calls per second, or a text such as "100/m", and `backoff` may be a text such as
    "10s:1d:5". A new endpoint without a secret gets one. With `respond`, the body of a 2xx answer
    is kept as the response to the message. Messages that name no endpoint go to the default one of
    their queue. That is its first endpoint, unless the definitions say otherwise.
    """

    queue: Annotated[QueueNameText, Meta(title="the queue")]
    url: Annotated[
        str,
        Meta(title="the URL to which messages are posted", min_length=1, max_length=LONGEST_URL),
    ]
    secret: Annotated[str, Meta(max_length=200)] | None = None
    type: Annotated[
        str, Meta(title="the payload type", min_length=1, max_length=MAX_TYPE_NAME_LENGTH)
    ] = defaults.CALL_TYPE
    timeout: Annotated[Duration, Meta(title="how long a whole call may take")] = duration_text(
        defaults.CALL_TIMEOUT
    )
    concurrency: Annotated[
        int, Meta(title="how many calls may run at a time", ge=1, le=MOST_CALLS)
    ] = defaults.CALL_CONCURRENCY
    rate: Annotated[
        str | int | float | None, Meta(title="the highest call rate, such as 5/s or 100/m")
    ] = None
    attempts: Annotated[
        int, Meta(title="after how many attempts to bury a message", ge=1, le=MOST_ATTEMPTS)
    ] = defaults.CALL_ATTEMPTS
    backoff: Annotated[
        Delays | str | None,
        Meta(
            title="the first delay between attempts, the longest one, and by which factor they grow"
        ),
    ] = defaults.CALL_BACKOFF
    respond: Annotated[bool, Meta(title="keep the body of a 2xx answer as the response")] = False
    keep: Annotated[Duration, Meta(title="how long to keep a response")] = duration_text(
        defaults.KEEP
    )
    default: Annotated[
        bool | None, Meta(title="whether it gets the messages that name no endpoint")
    ] = None


class ShownSecret(Struct, omit_defaults=True):
    """What may be shown of a secret that signs; `until` is set if it was replaced."""

    fingerprint: str
    public_key: str | None = None
    until: InstantText | None = None


class ShownDelays(Struct):
    """The delays between attempts, in seconds."""

    first: float
    longest: float
    factor: float


class EndpointStatus(Struct, omit_defaults=True):
    """An endpoint, with durations in seconds; `secret` is there only if it is new."""

    id: str
    queue: str
    type: str
    url: str
    timeout: float
    concurrency: int
    rate: float | None
    attempts: int
    backoff: ShownDelays
    respond: bool
    keep: float
    default: bool
    state: Literal["active", "throttled", "open", "disabled"]
    reason: str
    secrets: list[ShownSecret]
    since: InstantText | None = None
    until: InstantText | None = None
    secret: str | None = None


class EndpointList(Struct):
    """The endpoints of the queues that the token may see."""

    endpoints: list[EndpointStatus]


class SecretRotation(Struct, forbid_unknown_fields=True):
    """A new secret; during the `overlap`, callbacks are signed with the old one too.

    Without a secret, a new one is made: a shared one (`v1`), or a secret key (`v1a`).
    """

    overlap: Annotated[Duration, Meta(title="how long both secrets sign")] = duration_text(
        defaults.OVERLAP
    )
    secret: Annotated[str, Meta(max_length=200)] | None = None
    kind: Literal["v1", "v1a"] | None = None


class SwitchOff(Struct, forbid_unknown_fields=True):
    """Why an endpoint is disabled, for people to read."""

    reason: Annotated[str, Meta(max_length=LONGEST_REASON)] = ""

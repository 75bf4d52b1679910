"""The bodies of requests and answers about the endpoints of callbacks."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from duequeue import defaults
from duequeue.callbacks.endpoint import BACKOFF, LONGEST_URL, MOST_ATTEMPTS, MOST_CALLS
from duequeue.durations import duration_text
from duequeue.message import MAX_TYPE_NAME_LENGTH
from duequeue.server.times import Duration, InstantText
from duequeue.server.wire import QueueName, Request


class Delays(Request):
    """The delays between attempts: the first, the longest, and the factor by which they grow."""

    first: Duration = duration_text(BACKOFF.first)
    longest: Duration = duration_text(BACKOFF.longest)
    factor: Annotated[float, Meta(ge=1, le=1_000_000)] = BACKOFF.factor


class EndpointDefinition(Request):
    """Where the messages of a queue are posted to.

    What a change leaves out goes back to its default. Only the secret and `default` stay as they
    are. `rate` is calls per second, or a text such as "100/m", and `backoff` may be a text such as
    "10s:1d:5". A new endpoint without a secret gets one. With `respond`, the body of a 2xx answer
    is kept as the response to the message. Messages that name no endpoint go to the default one of
    their queue. That is its first endpoint, unless the definitions say otherwise.
    """

    queue: QueueName
    url: Annotated[str, Meta(min_length=1, max_length=LONGEST_URL)]
    secret: Annotated[str, Meta(max_length=200)] | None = None
    type: Annotated[str, Meta(min_length=1, max_length=MAX_TYPE_NAME_LENGTH)] = defaults.CALL_TYPE
    timeout: Duration = duration_text(defaults.CALL_TIMEOUT)
    concurrency: Annotated[int, Meta(ge=1, le=MOST_CALLS)] = defaults.CALL_CONCURRENCY
    rate: str | int | float | None = None
    attempts: Annotated[int, Meta(ge=1, le=MOST_ATTEMPTS)] = defaults.CALL_ATTEMPTS
    backoff: Delays | str | None = None
    respond: bool = False
    keep: Duration = duration_text(defaults.KEEP)
    default: bool | None = None


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


class SecretRotation(Request):
    """A new secret; during the `overlap`, callbacks are signed with the old one too.

    Without a secret, a new one is made: a shared one (`v1`), or a secret key (`v1a`).
    """

    overlap: Duration = duration_text(defaults.OVERLAP)
    secret: Annotated[str, Meta(max_length=200)] | None = None
    kind: Literal["v1", "v1a"] | None = None


class SwitchOff(Request):
    """Why an endpoint is disabled, for people to read."""

    reason: Annotated[str, Meta(max_length=1000)] = ""

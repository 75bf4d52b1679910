"""The parameters that several routes have."""

from typing import Annotated

from msgspec import Meta

from duequeue.defaults import LONGEST_PAGE
from duequeue.message import MAX_TYPE_NAME_LENGTH
from duequeue.server.routing import Parameter
from duequeue.server.times import Instant
from duequeue.server.wire import Key, QueueName

HOT_TYPES = ("application/json", "application/msgpack")

TypeName = Annotated[
    str, Meta(min_length=1, max_length=MAX_TYPE_NAME_LENGTH, pattern=r"^[^\x00]*$")
]
PageLength = Annotated[int, Meta(ge=1, le=LONGEST_PAGE)]
Prefix = Annotated[str, Meta(max_length=200, pattern=r"^[^\x00]*$")]

QUEUE = Parameter("queue", QueueName, "The name of the queue", required=True, place="path")
KEY = Parameter(
    "key", Key, "The key, percent-encoded; it may hold any character", required=True, place="path"
)
TYPE = Parameter("type", TypeName, "The payload type of the queue: json if it is not given")
LIMIT = Parameter("limit", PageLength, "How many to return at most")
KEY_PREFIX = Parameter("key_prefix", Prefix, "Only keys that begin with this")
DUE_AFTER = Parameter("due_after", Instant, "Only messages due at this instant or later")
DUE_BEFORE = Parameter("due_before", Instant, "Only messages due before this instant")
DUE_AT = Parameter("due_at", Instant, "When the message is due")
DELAY = Parameter("delay", str, 'After which time it is due, such as "30m"')

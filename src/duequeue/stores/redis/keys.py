"""The names of the keys in which a queue is stored.

All keys of a kind have the kind as their hash tag, so that a cluster keeps them in one slot:

| key           | type   | holds                                                                  |
|---------------|--------|------------------------------------------------------------------------|
| `waiting`     | zset   | free messages by due time; member: mark of the id, and the key          |
| `leased`      | zset   | ids of leased messages by the end of the lease                          |
| `ended`       | zset   | ids of free messages whose lease ended, by that end                     |
| `messages`    | hash   | key: `id asked expires length payload headers`                          |
| `states`      | hash   | id: `token attempts due key`, of messages that were claimed; and flags  |
| `last_id`     | string | the last id; ids are never used again                                   |
| `listeners`   | set    | channels of the processes that wait                                     |
| `burials`     | hash   | number: the burial                                                      |
| `buried_at`   | zset   | numbers of burials by time                                              |
| `buried_keys` | zset   | key, NUL, number                                                       |
| `last_burial` | string | the last number                                                         |
| `responses`   | hash   | key: `responded expires`, and `a` and a response or `r` and a reason    |
| `response_ends` | zset | keys of responses by when they expire                                   |
| `awaiting`    | set    | channels of the processes that wait for responses                       |
| `crons`       | hash   | prefix: version and row                                                 |
| `ticks`       | zset   | prefix, configuration, instant and key, with NUL between them           |
| `forgotten`   | hash   | prefix, NUL, configuration: forgotten until                             |
| `shards`      | string | into how many shards the queue is divided                               |
| `barrier`     | string | nothing: it is written before a change is confirmed as durable          |
| `days`        | set    | days that have rows of the history                                      |
| `rows:<day>`  | stream | the rows of the history of one day                                      |

Two keys are the database's own: `dq:kinds`, a hash from kinds to their numbers, which also
has the layout under an empty name, and `dq:last_row`, the last id of a row of the history.
"""

from collections.abc import Mapping
from functools import cached_property, lru_cache
from itertools import count

from duequeue.port.history_table import day_of
from duequeue.stores.redis.scripts import Code
from duequeue.stores.redis_client.settings import SLOTS, slot_of

PREFIX = "dq"
# It changes whenever an older version of DueQueue could not read what a newer one wrote.
LAYOUT = 1
KINDS = b"dq:kinds"
LAST_ROW = b"dq:last_row"


class QueueKeys:
    """The keys of one kind of message."""

    def __init__(self, kind: str, *, keeps_history: bool = False, tag: str | None = None) -> None:
        self.kind = kind
        # A shard of a queue has a tag, and so a slot, of its own.
        self._base = f"{PREFIX}:{{{tag or escaped(kind)}}}:".encode()
        self._keeps_history = keeps_history
        self._of_code: dict[str, tuple[bytes, ...]] = {}

    def named(self, name: str) -> bytes:
        """Return one key."""
        return self._base + name.encode()

    def rows(self, day: int) -> bytes:
        """Return the key of a day of the history."""
        return self._base + b"rows:%d" % day

    @cached_property
    def days(self) -> bytes:
        """The key of the days that have rows."""
        return self.named("days")

    def of(
        self, code: Code, now: int | None = None, own: Mapping[str, bytes] | None = None
    ) -> tuple[bytes, ...]:
        """Return the keys that a script takes; those of the history only if it is kept.

        `own` has the keys that depend on more than the kind.
        """
        if own:
            keys = tuple(own[name] if name in own else self.named(name) for name in code.keys)
        else:
            known = self._of_code.get(code.name)
            if known is None:
                known = self._of_code[code.name] = tuple(map(self.named, code.keys))
            keys = known
        if code.keeps_history and self._keeps_history and now is not None:
            return (*keys, self.rows(day_of(now)), LAST_ROW, self.days)
        return keys


def escaped(kind: str) -> str:
    """Return a kind without braces, which would end the hash tag."""
    return kind.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def shards_of(kind: str, shards: int) -> list[QueueKeys]:
    """Return the keys of each shard of a queue, which may have only one."""
    if shards == 1:
        return [QueueKeys(kind)]
    return [QueueKeys(kind, tag=tag) for tag in tags(kind, shards)]


@lru_cache(maxsize=256)
def tags(kind: str, shards: int) -> tuple[str, ...]:
    """Return the hash tags of the shards, whose slots are spread evenly over a cluster.

    The last part of a tag is chosen so that its slot is in the shard's own part of all slots.
    """
    return tuple(_tag(kind, number, shards) for number in range(shards))


def _tag(kind: str, number: int, shards: int) -> str:
    own = range(SLOTS * number // shards, SLOTS * (number + 1) // shards)
    tries = (f"{escaped(kind)}/{number}.{choice}" for choice in count())
    return next(name for name in tries if slot_of(name) in own)

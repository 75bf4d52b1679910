"""Whether a server keeps its data, which is checked when a queue is opened."""

import logging
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from redis.exceptions import ResponseError

from duequeue.errors import StoreError, StoreUnavailable
from duequeue.port.store import Steps
from duequeue.stores.redis.calling import Caller
from duequeue.stores.redis.commands import Question, Script
from duequeue.stores.redis_client.settings import Durable, RedisSettings

logger = logging.getLogger("duequeue.redis")

OLDEST = (6, 2)
# The first version that has WAITAOF.
CONFIRMS_FSYNC = (7, 2)

_IN_MEMORY = (
    "%s writes no append-only file, so all messages are lost when it stops; switch "
    "appendonly on, or add persistence=none to the url if that may happen"
)
_TOO_EARLY = (
    "%s confirms changes before they are on its disk, although durable=fsync is in the url, "
    "because WAITAOF of this version waits for the disk only if appendfsync is always; set it so"
)
_warned_of: set[tuple[str, str]] = set()

# What INFO says; it is empty if the user may not call it.
About: TypeAlias = dict[str, str]


class Refusal(NamedTuple):
    """Why a server is refused, and the way out; with `may_end`, the reason may end by itself."""

    about: str
    reason: str
    way_out: str
    may_end: bool = False


def check_server(settings: RedisSettings, caller: Caller) -> Steps[None]:
    """Raise if the server would lose messages, and warn if it keeps them in memory only."""
    about = yield from ask_server(caller.script("server"))
    if not about:
        logger.info("%s: its user may not call INFO, so nothing was checked", settings.address)
        return
    for refusal in refusals(settings, about):
        kind = StoreUnavailable if refusal.may_end else StoreError
        raise kind(f"Redis at {settings.address}: {refusal.reason}; {refusal.way_out}")
    if about.get("aof_enabled") == "0" and not settings.may_forget:
        _warn_once(settings, _IN_MEMORY)
    is_early = settings.durable is Durable.FSYNC and confirms_too_early(about)
    if is_early and (yield from ask_sync()) != "always":
        _warn_once(settings, _TOO_EARLY)


def ask_server(script: Script) -> Steps[About]:
    """Run the script `server`, and return what the server says of itself."""
    text: bytes = yield script
    return parse(text)


def ask_sync() -> Steps[str | None]:
    """Return appendfsync of the server that was asked last; None if the user may not ask."""
    setting = yield from asked("CONFIG", "GET", "appendfsync")
    return setting[1].decode() if setting else None


def asked(*words: str) -> Steps[Any]:
    """Ask one question; the answer is None if the user may not ask it."""
    try:
        return (yield Question(words))
    except ResponseError:
        return None


def parse(text: bytes) -> About:
    """Return lines such as `name:value` as a dictionary."""
    return dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)


def refusals(settings: RedisSettings, about: About) -> Iterator[Refusal]:
    """Return why a queue with these settings cannot be opened on a server."""
    version = about.get("redis_version", "")
    if version and _numbers(version) < OLDEST:
        yield Refusal("server", f"Redis {version} is too old", "use at least 6.2")
    if about.get("role") == "slave":
        yield Refusal(
            "server",
            "it is a replica, which takes no messages",
            "name its primary in the url, or a Sentinel that knows the primary",
            may_end=True,
        )
    policy = about.get("maxmemory_policy", "noeviction")
    is_limited = about.get("maxmemory", "0") != "0"
    if is_limited and policy.startswith("allkeys") and not settings.may_evict:
        yield Refusal(
            "eviction",
            f"its maxmemory-policy is {policy}, so it deletes whole queues when memory is short",
            "set it to noeviction, or add eviction=allow to the url if that may happen",
        )
    yield from _refused_durability(settings.durable, about)


def confirms_too_early(about: About) -> bool:
    """Return whether WAITAOF does not wait for the disk if appendfsync is everysec.

    Redis 8 has mended it (https://github.com/redis/redis/pull/13793), and Valkey 9.1 has not.
    """
    return "valkey_version" in about or about.get("redis_version", "").startswith("7.4.")


def _refused_durability(durable: Durable, about: About) -> Iterator[Refusal]:
    version = about.get("redis_version", "")
    if durable is Durable.FSYNC and version and _numbers(version) < CONFIRMS_FSYNC:
        yield Refusal(
            "append-only file",
            f"durable=fsync in the url needs Redis 7.2, but this is {version}",
            "use a newer server, or leave durable= out",
        )
    elif durable is Durable.FSYNC and about.get("aof_enabled") == "0":
        yield Refusal(
            "append-only file",
            "durable=fsync in the url needs an append-only file there",
            "switch appendonly on",
        )
    if durable is Durable.REPLICA and about.get("connected_slaves") == "0":
        yield Refusal(
            "replicas",
            "it has no replica at the moment, which durable=replica in the url demands",
            "start one, or leave durable= out",
            may_end=True,
        )


def _warn_once(settings: RedisSettings, words: str) -> None:
    if (settings.place, words) not in _warned_of:
        _warned_of.add((settings.place, words))
        logger.warning(words, settings.address)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])

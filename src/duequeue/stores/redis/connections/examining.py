"""Whether a server keeps its data, which is checked when a queue is opened, and by the doctor."""

import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from redis.exceptions import ResponseError

from duequeue.errors import StoreError, StoreUnavailable
from duequeue.port.examining import Finding, Level, judge_clock, judge_connections
from duequeue.port.store import Steps
from duequeue.stores.redis.commands import Caller, Question, Script
from duequeue.stores.redis.keys import KINDS, LAYOUT, shards_of
from duequeue.stores.redis.scripts import code
from duequeue.stores.redis_client.cluster import shared_map
from duequeue.stores.redis_client.settings import SLOTS, Durable, RedisSettings, Way

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

NEARLY_FULL = 0.8
FILE = "append-only file"


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


def examine(
    settings: RedisSettings, kinds: Callable[[], Steps[list[str]]], now: int
) -> Steps[list[Finding]]:
    """Examine the server, or each node of a cluster that has a queue."""
    if settings.way is not Way.CLUSTER:
        about = yield from _ask(KINDS)
        return [*judge_server(settings, about, now), (yield from _examine_layout())]
    findings = [(yield from _examine_layout())]
    queues = [keys for kind in (yield from kinds()) for keys in shards_of(kind, settings.shards)]
    seen = set[str]()
    for place in [KINDS, *(keys.named("messages") for keys in queues)]:
        about = yield from _ask(place)
        node = str(shared_map(settings).node_for(place))
        if node not in seen:
            seen.add(node)
            cluster = yield from asked("CLUSTER", "INFO")
            own = [*judge_server(settings, about, now), judge_cluster(cluster)]
            findings += [each._replace(about=f"{each.about} of {node}") for each in own]
    return findings


def judge_server(settings: RedisSettings, about: About, now: int) -> list[Finding]:
    """Judge what a server says about itself."""
    if not about:
        text = "This user may not call INFO, so the server was not examined."
        return [Finding(Level.ADVICE, "server", text, "Give the user the right +info.")]
    refused = [*refusals(settings, about)]
    known = {refusal.about for refusal in refused}
    judged = [
        judge_clock(int(about["server_time_usec"]) // 1000 - now),
        _connections(about),
        judge_memory(about),
        _eviction(about),
        judge_file(settings, about),
        *judge_writing(about),
        _replicas(about),
    ]
    others = [each for each in judged if each.about not in known]
    return [_name(about), *map(_problem, refused), *others]


def judge_memory(about: About) -> Finding:
    """Judge how much of the memory is in use."""
    used, limit = int(about["used_memory"]), int(about.get("maxmemory", "0"))
    most = limit or int(about.get("total_system_memory", "0"))
    name = "maxmemory is" if limit else "the machine has"
    if not most:
        return Finding(Level.OK, "memory", f"{used / 1e6:,.1f} MB are in use.")
    text = f"{used / 1e6:,.1f} MB are in use, and {name} {most / 1e6:,.1f} MB."
    if used < NEARLY_FULL * most:
        return Finding(Level.OK, "memory", text)
    advice = "Raise maxmemory, or drain the queues. On a full server, every offer fails."
    return Finding(Level.PROBLEM if used >= most else Level.ADVICE, "memory", text, advice)


def judge_file(settings: RedisSettings, about: About) -> Finding:
    """Judge whether messages outlive the server, and how soon they are on its disk."""
    name = FILE
    if about.get("aof_enabled") == "0":
        text = "The server writes no append-only file, so all messages are lost when it stops."
        if settings.may_forget:
            return Finding(Level.OK, name, text)
        advice = "Switch appendonly on, or add persistence=none to the url if that may happen."
        return Finding(Level.ADVICE, name, text, advice)
    sync = about.get("appendfsync")
    if sync is None:
        text = "This user may not read how often the append-only file is synchronized."
        return Finding(Level.ADVICE, name, text, "Give the user the right +config|get.")
    if settings.durable is Durable.FSYNC and (problem := _unconfirmed(sync, about)):
        return problem
    if sync != "no":
        return Finding(Level.OK, name, f"The server writes one, and appendfsync is {sync}.")
    text = "appendfsync is no, so a crash of the machine may lose the last half minute."
    return Finding(Level.ADVICE, name, text, "Set appendfsync to everysec or always.")


def _unconfirmed(sync: str, about: About) -> Finding | None:
    """Return why durable=fsync in the URL is not what it promises, if so."""
    if sync == "no":
        text = "appendfsync is no, so nothing confirms what durable=fsync in the url waits for."
        return Finding(Level.PROBLEM, FILE, text, "Set appendfsync to everysec or always.")
    if sync == "everysec" and confirms_too_early(about):
        text = (
            "durable=fsync in the url is confirmed too early, because WAITAOF of this version "
            "waits for the disk only if appendfsync is always."
        )
        return Finding(Level.PROBLEM, FILE, text, "Set appendfsync to always.")
    return None


def judge_writing(about: About) -> Iterator[Finding]:
    """Judge whether the server could write its files when it last tried."""
    advice = "Look at its log and its disk. Until it can write, it may refuse every offer."
    files = {"aof_last_write_status": FILE, "rdb_last_bgsave_status": "snapshot"}
    for name, what in files.items():
        if about.get(name, "ok") != "ok":
            text = f"The server could not write its {what} ({name} is {about[name]})."
            yield Finding(Level.PROBLEM, "disk", text, advice)
    if about.get("aof_last_bgrewrite_status", "ok") != "ok":
        text = "The server could not rewrite its append-only file, which therefore grows."
        yield Finding(Level.ADVICE, "disk", text, "Look at its log, its disk and its memory.")


def judge_cluster(reply: bytes | None) -> Finding:
    """Judge whether a cluster serves all slots, as one of its nodes sees it."""
    if reply is None:
        text = "This user may not read the state of the cluster."
        return Finding(Level.ADVICE, "cluster", text, "Give the user the right +cluster|info.")
    about = parse(reply)
    state, served = about.get("cluster_state"), int(about.get("cluster_slots_ok", "0"))
    text = f"The state of the cluster is {state}, and {served:,} of {SLOTS:,} slots are served."
    if state == "ok" and served == SLOTS:
        return Finding(Level.OK, "cluster", text)
    advice = "Start the nodes that are missing, or assign their slots to others."
    return Finding(Level.PROBLEM, "cluster", text, advice)


def judge_layout(found: int | None) -> Finding:
    """Judge whether this code can read the keys."""
    if found is None:
        return Finding(Level.OK, "layout", "The database has no queue yet.")
    text = f"The keys have layout {found}."
    if found == LAYOUT:
        return Finding(Level.OK, "layout", text)
    advice = "Use the version of DueQueue that wrote them."
    return Finding(Level.PROBLEM, "layout", text, advice)


def _ask(place: bytes) -> Steps[About]:
    """Ask the server that has a key for everything that it says about itself."""
    about = yield from ask_server(Script(code("server"), [place], ()))
    sync = yield from ask_sync()
    return about | ({} if sync is None else {"appendfsync": sync})


def _examine_layout() -> Steps[Finding]:
    found: bytes | None = yield Question(("HGET", KINDS, b""))
    return judge_layout(None if found is None else int(found))


def _problem(refusal: Refusal) -> Finding:
    text, advice = (f"{each[0].upper()}{each[1:]}." for each in (refusal.reason, refusal.way_out))
    return Finding(Level.PROBLEM, refusal.about, text, advice)


def _name(about: About) -> Finding:
    name = f"Redis {about['redis_version']}"
    if "valkey_version" in about:
        name = f"Valkey {about['valkey_version']}"
    return Finding(Level.OK, "server", f"This is {name}.")


def _connections(about: About) -> Finding:
    advice = "Lower pool_size in the URLs, or raise maxclients."
    return judge_connections(int(about["connected_clients"]), int(about["maxclients"]), advice)


def _eviction(about: About) -> Finding:
    return Finding(Level.OK, "eviction", f"The maxmemory-policy is {about['maxmemory_policy']}.")


def _replicas(about: About) -> Finding:
    return Finding(Level.OK, "replicas", f"The server has {about['connected_slaves']} of them.")

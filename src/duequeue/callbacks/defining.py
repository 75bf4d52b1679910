"""Changes to endpoints, the same over HTTP and on the command line."""

import asyncio
from collections.abc import Collection
from typing import Literal, NamedTuple

from msgspec.structs import replace

from duequeue.backoff import Backoff
from duequeue.callbacks.definition import (
    LONGEST_REASON,
    Delays,
    EndpointDefinition,
    EndpointStatus,
    SecretRotation,
    ShownDelays,
    ShownSecret,
)
from duequeue.callbacks.endpoint import BACKOFF, Endpoint, read_rate
from duequeue.callbacks.records import Condition, Records, StoredEndpoint
from duequeue.callbacks.signing import (
    PRIVATE_PREFIX,
    fingerprint,
    new_keys,
    new_secret,
    public_half,
)
from duequeue.durations import Duration, duration_of
from duequeue.errors import InvalidArgument
from duequeue.instants import instant_text, nearest_instant, span_to_millis

BY_HAND = "disabled by hand"


class Defined(NamedTuple):
    """An endpoint after a change, and its secret if that is new."""

    entry: StoredEndpoint
    new_secret: str | None = None

    def __repr__(self) -> str:
        return f"<Defined {self.entry.endpoint.id}>"


class Definitions:
    """Defines, changes and removes endpoints, one change at a time."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._lock = asyncio.Lock()

    async def all(self) -> list[Defined]:
        """Return every endpoint that can be read."""
        return [Defined(each) for each in (await self._records.all()).values()]

    async def get(self, identity: str) -> Defined | None:
        """Return one endpoint."""
        found = await self._records.get(identity)
        return None if found is None else Defined(found)

    async def define(self, identity: str, asked: EndpointDefinition) -> Defined:
        """Define or change an endpoint."""
        endpoint = endpoint_of(identity, asked)
        return await self.put(endpoint, asked.secret, default=asked.default)

    async def remove(self, identity: str) -> bool:
        """Remove an endpoint, and return whether there was one."""
        return await self._records.remove(identity)

    def shown(self, defined: Defined, identity: str | None = None) -> EndpointStatus:
        """Return what may be shown of an endpoint; its id may have another form."""
        return shown(defined, identity, self._records.context.now())

    async def put(self, endpoint: Endpoint, secret: str | None, *, default: bool | None) -> Defined:
        """Define or change an endpoint; without a secret, keep the one it has, or make one."""
        endpoint.checked()
        keys = None if secret is None else new_keys(secret)
        async with self._lock:
            known = await self._records.all()
            before = known.get(endpoint.id)
            is_default = _default(endpoint, default, known.values())
            endpoint = replace(endpoint, default=is_default)
            made = None
            if before is None and keys is None:
                made = new_secret()
                keys = new_keys(made)
            if before is not None and keys is not None and before.keys.text == keys.text:
                keys = None  # so that older secrets still sign until their overlap ends
            await self._records.put(endpoint, keys)
            return Defined(await self._found(endpoint.id), made)

    async def rotate(self, identity: str, asked: SecretRotation) -> Defined | None:
        """Change the secret; for some time, callbacks are signed with the old one too."""
        secret, kind = asked.secret, asked.kind
        if secret is not None and kind is not None:
            raise InvalidArgument(
                "kind",
                "applies only to a secret that the server makes; leave out kind or secret",
            )
        overlap = duration_of(asked.overlap, "overlap")
        async with self._lock:
            before = await self._records.get(identity)
            if before is None:
                return None
            text = secret or new_secret(kind or _kind(before))
            keys = before.keys.rotated(text, overlap, self._records.context.now())
            await self._records.put_keys(identity, keys)
            return Defined(await self._found(identity), None if secret else text)

    async def disable(self, identity: str, reason: str = "") -> bool | None:
        """Stop calling an endpoint; return whether it was enabled, or None if it is unknown."""
        if len(reason) > LONGEST_REASON:
            raise InvalidArgument(
                "reason", f"must have at most {LONGEST_REASON} characters, not {len(reason)}"
            )
        if await self._records.get(identity) is None:
            return None
        now = self._records.context.now()
        condition = Condition("disabled", reason or BY_HAND, now)
        return await self._records.switch_off(identity, condition)

    async def enable(self, identity: str) -> bool | None:
        """Call an endpoint again; return whether it was disabled, or None if it is unknown."""
        if await self._records.get(identity) is None:
            return None
        return await self._records.switch_on(identity)

    async def _found(self, identity: str) -> StoredEndpoint:
        found = await self._records.get(identity)
        if found is None:
            raise InvalidArgument(
                "id", text="id: another process has removed the endpoint in the meantime"
            )
        return found


def _kind(entry: StoredEndpoint) -> Literal["v1", "v1a"]:
    return "v1a" if entry.keys.text.startswith(PRIVATE_PREFIX) else "v1"


def _default(endpoint: Endpoint, asked: bool | None, known: Collection[StoredEndpoint]) -> bool:  # noqa: FBT001 - three-valued
    """Return whether an endpoint is the default one; a queue has at most one."""
    others = [
        each.endpoint.id
        for each in known
        if each.endpoint.kind == endpoint.kind
        and each.endpoint.default
        and each.endpoint.id != endpoint.id
    ]
    if asked and others:
        raise InvalidArgument(
            "default",
            text=f"default: the endpoint {others[0]!r} is already the default of this queue; "
            "define it with default=false first",
        )
    if asked is not None:
        return asked
    own = [each.endpoint for each in known if each.endpoint.id == endpoint.id]
    if own and own[0].kind == endpoint.kind:
        return own[0].default
    return not others


def endpoint_of(identity: str, asked: EndpointDefinition) -> Endpoint:
    """Return the endpoint that a definition describes."""
    backoff = _backoff(asked.backoff)
    return Endpoint(
        id=identity,
        queue=asked.queue,
        type=asked.type,
        url=asked.url,
        timeout=_millis(asked.timeout, "timeout"),
        concurrency=asked.concurrency,
        rate=None if asked.rate is None else read_rate(asked.rate),
        attempts=asked.attempts,
        first_delay=span_to_millis(backoff.first, "first"),
        longest_delay=span_to_millis(backoff.longest, "longest"),
        delay_factor=backoff.factor,
        respond=asked.respond,
        keep=_millis(asked.keep, "keep"),
    )


def _backoff(given: Delays | str | None) -> Backoff:
    match given:
        case None:
            return BACKOFF
        case str():
            try:
                return Backoff.parse(given, BACKOFF)
            except InvalidArgument as error:
                raise InvalidArgument("backoff", text=f"backoff: {error}") from None
        case Delays():
            first = duration_of(given.first, "first")
            return Backoff(first, duration_of(given.longest, "longest"), given.factor)


def _millis(given: Duration, argument: str) -> int:
    return span_to_millis(duration_of(given, argument), argument)


def shown(defined: Defined, identity: str | None, now: int) -> EndpointStatus:
    """Return what may be shown of an endpoint, which is everything but its secrets."""
    endpoint = defined.entry.endpoint
    condition = defined.entry.condition(now)
    keys = defined.entry.keys
    older = [
        ShownSecret(fingerprint(each.text), public_half(each.text), _text(each.until))
        for each in keys.in_overlap(now)
    ]
    return EndpointStatus(
        id=identity or endpoint.id,
        queue=endpoint.queue,
        type=endpoint.type,
        url=endpoint.url,
        timeout=endpoint.timeout / 1000,
        concurrency=endpoint.concurrency,
        rate=endpoint.rate,
        attempts=endpoint.attempts,
        backoff=ShownDelays(
            endpoint.first_delay / 1000, endpoint.longest_delay / 1000, endpoint.delay_factor
        ),
        respond=endpoint.respond,
        keep=endpoint.keep / 1000,
        default=endpoint.default,
        state=condition.state,
        reason=condition.reason,
        secrets=[
            ShownSecret(fingerprint(keys.text), public_half(keys.text)),
            *older,
        ],
        since=None if condition.state == "active" else _text(condition.since),
        until=None if condition.until is None else _text(condition.until),
        secret=defined.new_secret,
    )


def _text(millis: int) -> str:
    return instant_text(nearest_instant(millis))

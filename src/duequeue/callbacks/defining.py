"""Changes to endpoints, the same over HTTP and on the command line."""

import asyncio
from collections.abc import Collection
from datetime import timedelta
from typing import Literal, NamedTuple

from msgspec.structs import replace

from duequeue.callbacks.endpoint import Endpoint
from duequeue.callbacks.records import Condition, Entry, Records
from duequeue.callbacks.signing import PRIVATE_PREFIX, new_secret
from duequeue.callbacks.signing_keys import new_keys
from duequeue.errors import InvalidArgument

BY_HAND = "disabled by hand"


class DefaultTaken(ValueError):
    """Another endpoint already gets the messages that do not name one."""


class Defined(NamedTuple):
    """An endpoint after a change, and its secret if that is new."""

    entry: Entry
    new_secret: str | None = None

    def __repr__(self) -> str:
        return f"<Defined {self.entry.endpoint.id}>"


class Definitions:
    """Defines, changes and removes endpoints, one change at a time."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._lock = asyncio.Lock()

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

    async def rotate(
        self,
        identity: str,
        overlap: timedelta,
        secret: str | None = None,
        kind: Literal["v1", "v1a"] | None = None,
    ) -> Defined | None:
        """Change the secret; for some time, callbacks are signed with the old one too."""
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

    async def _found(self, identity: str) -> Entry:
        found = await self._records.get(identity)
        if found is None:
            raise InvalidArgument(
                "id", text="id: another process has removed the endpoint in the meantime"
            )
        return found


def _kind(entry: Entry) -> Literal["v1", "v1a"]:
    return "v1a" if entry.keys.text.startswith(PRIVATE_PREFIX) else "v1"


def _default(endpoint: Endpoint, asked: bool | None, known: Collection[Entry]) -> bool:  # noqa: FBT001 - three-valued
    """Return whether an endpoint is the default one; a queue has at most one."""
    others = [
        each.endpoint.id
        for each in known
        if each.endpoint.kind == endpoint.kind
        and each.endpoint.default
        and each.endpoint.id != endpoint.id
    ]
    if asked and others:
        raise DefaultTaken(
            f"default: the endpoint {others[0]!r} is already the default of this queue; "
            "define it with default=false first"
        )
    if asked is not None:
        return asked
    own = [each.endpoint for each in known if each.endpoint.id == endpoint.id]
    if own and own[0].kind == endpoint.kind:
        return own[0].default
    return not others

"""The endpoints of a database, through the library."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from duequeue.callbacks.defining import Defined, Definitions
from duequeue.callbacks.definition import EndpointDefinition, SecretRotation
from duequeue.callbacks.endpoint import full_endpoint_id
from duequeue.callbacks.records import Records, open_records
from duequeue.cli.opening import RETRY, NothingFound
from duequeue.clock import SystemClock
from duequeue.message import checked_name
from duequeue.parts import AsyncParts, QueueSettings

R = TypeVar("R")

_MISSING = "no endpoint has this id; `duequeue endpoint ls` lists them"


@contextmanager
def endpoints_in(url: str) -> "Iterator[OwnEndpoints]":
    """Return the endpoints of a database until the end of the block."""
    with asyncio.Runner() as runner:
        parts = runner.run(open_records(QueueSettings(url, SystemClock(), retry=RETRY)))
        try:
            yield OwnEndpoints(parts, runner)
        finally:
            runner.run(parts.close())


class OwnEndpoints:
    """Endpoints as `duequeue.cli.endpoints.Endpoints` describes them."""

    def __init__(self, parts: AsyncParts[bytes], runner: asyncio.Runner) -> None:
        self._definitions = Definitions(Records(parts.queue, parts.context))
        self._runner = runner

    def all(self, queue: str | None) -> list[dict[str, Any]]:
        wanted = None if queue is None else checked_name(queue)
        found = self._run(self._definitions.all())
        return [self._shown(each) for each in found if wanted in {None, each.entry.endpoint.queue}]

    def get(self, identity: str) -> dict[str, Any]:
        return self._shown(_found(self._run(self._definitions.get(_full(identity)))))

    def put(self, identity: str, definition: dict[str, Any]) -> dict[str, Any]:
        asked = EndpointDefinition(**definition)
        return self._shown(self._run(self._definitions.define(_full(identity), asked)))

    def rotate(self, identity: str, asked: dict[str, Any]) -> dict[str, Any]:
        rotated = self._definitions.rotate(_full(identity), SecretRotation(**asked))
        return self._shown(_found(self._run(rotated)))

    def remove(self, identity: str) -> None:
        if not self._run(self._definitions.remove(_full(identity))):
            raise NothingFound(_MISSING)

    def enable(self, identity: str) -> bool:
        return _found(self._run(self._definitions.enable(_full(identity))))

    def disable(self, identity: str, reason: str) -> bool:
        return _found(self._run(self._definitions.disable(_full(identity), reason)))

    def _run(self, work: Coroutine[Any, Any, R]) -> R:
        return self._runner.run(work)

    def _shown(self, defined: Defined) -> dict[str, Any]:
        shown: dict[str, Any] = msgspec.to_builtins(self._definitions.shown(defined))
        return shown


def _full(identity: str) -> str:
    """Return the id as it is stored; a lone slash in front says that it belongs to no prefix."""
    prefix, _, name = identity.rpartition("/")
    return full_endpoint_id(prefix, name)


def _found(found: R | None) -> R:
    if found is None:
        raise NothingFound(_MISSING)
    return found

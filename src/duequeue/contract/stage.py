"""A handler that the test directs, on threads and on tasks alike: it begins, and awaits a cue."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Protocol, Self

from duequeue.contract.faces import Blocking, DeliveryFace, LoopThread, QueueFace
from duequeue.contract.phrases import PATIENCE, snapshot

NO_GRACE = timedelta(0)
LITTLE_GRACE = timedelta(milliseconds=20)


class HeldDelivery(DeliveryFace, Protocol):
    """A delivery in the hands of a consumer."""

    @property
    def lost(self) -> bool: ...


class ConsumerFace(Protocol):
    """What a test may ask of a consumer."""

    def stop(self, grace: timedelta = ...) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> bool | None: ...


@dataclass(frozen=True)
class Scene:
    """One call of the handler."""

    delivery: HeldDelivery
    cue: "Future[object]" = field(default_factory=Future)

    def end(self, outcome: object = None) -> None:
        """Have the handler return this, or raise it if it is an exception."""
        if isinstance(outcome, BaseException):
            self.cue.set_exception(outcome)
        else:
            self.cue.set_result(outcome)

    def end_unless_cancelled(self) -> None:
        """Let the handler return, unless it is a task that was cancelled meanwhile."""
        with suppress(InvalidStateError):
            self.end()

    @property
    def cancelled(self) -> bool:
        """Whether the handler was cancelled, as only tasks can be."""
        return self.cue.cancelled()


class Stage:
    """Where the handlers of one test play; without a loop they play on threads."""

    def __init__(self, loop: LoopThread | None) -> None:
        self._loop = loop
        self._begun: SimpleQueue[Scene] = SimpleQueue()
        self._scenes: list[Scene] = []

    @property
    def on_threads(self) -> bool:
        return self._loop is None

    @property
    def handler(self) -> Callable[[Any], Any]:
        """The handler to consume with."""
        return self._act if self.on_threads else self._act_async

    def next(self) -> Scene:
        """Wait until the handler is called."""
        return self._begun.get(timeout=PATIENCE)

    def is_empty(self) -> bool:
        """Return whether the test has seen every call."""
        try:
            self._begun.put(self._begun.get_nowait())
        except Empty:
            return True
        return False

    def face_of(self, awaited: Any) -> Any:
        """The blocking face of a delivery or a consumer."""
        return awaited if self._loop is None else Blocking(awaited, self._loop)

    def close(self) -> None:
        """End every scene that still waits for its cue."""
        for scene in self._scenes:
            if not scene.cue.done():
                scene.end()

    def _act(self, delivery: Any) -> object:
        return self._begin(delivery).cue.result()

    async def _act_async(self, delivery: Any) -> object:
        return await asyncio.wrap_future(self._begin(delivery).cue)

    def _begin(self, delivery: Any) -> Scene:
        scene = Scene(self.face_of(delivery))
        self._scenes.append(scene)
        self._begun.put(scene)
        return scene


def until(what_is_true: Callable[[], bool]) -> None:
    """Ask until it is so."""
    gives_up_at = monotonic() + PATIENCE
    while not what_is_true():
        assert monotonic() < gives_up_at, "it never came true"
        sleep(0.001)  # the threads and processes that are to make it true need the cores


def until_gone(queue: QueueFace, key: str) -> None:
    """Ask until a message was acked."""
    until(lambda: not queue.contains(key))


def until_leased(queue: QueueFace, key: str, end: datetime) -> None:
    """Ask until a message is leased until then."""
    until(lambda: snapshot(queue, key).leased_until == end)

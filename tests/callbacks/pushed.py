"""A push process in an event loop on a thread of its own, for tests that block."""

import asyncio
import secrets
import threading
from collections.abc import Collection, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from duequeue import ManualClock
from duequeue.callbacks.answer import CallAnswer
from duequeue.callbacks.endpoint import Endpoint
from duequeue.callbacks.guard import Guard
from duequeue.callbacks.posting import Poster
from duequeue.callbacks.pushing import Push
from duequeue.callbacks.records import Records, StoredEndpoint, open_records
from duequeue.callbacks.signing import new_keys, new_secret
from duequeue.contract.stage import until
from duequeue.parts import QueueSettings
from duequeue.queue_async import AsyncQueue
from tests.callbacks.movable_loop import ClockOfLoop, MovableLoop, let_pass
from tests.fixtures.watched import Watch

T = TypeVar("T")

PATIENCE = 20.0
START = datetime(2030, 1, 31, 9, tzinfo=UTC)
SECRET = new_secret()


class FailingPoster(Poster):
    """Has the first calls fail before they are made."""

    def __init__(self, guard: Guard | None, *failures: Exception) -> None:
        super().__init__(guard)
        self._failures = iter(failures)

    async def post(self, *given: Any) -> CallAnswer:
        for failure in self._failures:
            raise failure
        return await super().post(*given)


class Pushing:
    """A database with endpoints, to which any number of push processes can be started."""

    def __init__(self, settings: QueueSettings, loop: asyncio.AbstractEventLoop) -> None:
        self.settings = settings
        self._loop = loop
        self._opened = self.run(open_records(settings))
        self.records = Records(self._opened.queue, self._opened.context)
        self._pushes: list[Push] = []
        self._posters: list[Poster] = []

    @property
    def url(self) -> str:
        return self.settings.url

    @property
    def stored(self) -> AsyncQueue[bytes]:
        """The queue in which the endpoints are."""
        return self._opened.queue

    @property
    def clock(self) -> ManualClock:
        assert isinstance(self.settings.clock, ManualClock)
        return self.settings.clock

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something in the loop of the push processes."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def define(
        self, url: str, identity: str = "shop", queue: str = "orders", **more: Any
    ) -> StoredEndpoint:
        """Define an endpoint."""
        endpoint = Endpoint(id=identity, queue=queue, url=url, **more).checked()
        self.run(self.records.put(endpoint, new_keys(SECRET)))
        return self.entry(identity)

    def entry(self, identity: str = "shop") -> StoredEndpoint:
        """Return what is stored about an endpoint."""
        found = self.run(self.records.get(identity))
        assert found is not None
        return found

    def state(self, identity: str = "shop") -> str:
        """Return the state of an endpoint, as people see it."""
        now = self._opened.context.now()
        return self.entry(identity).condition(now).state

    def start(
        self,
        guard: Guard | None = None,
        calls: int = 1000,
        *,
        watch: Watch | None = None,
        failures: Collection[Exception] = (),
    ) -> Push:
        """Start a push process, whose first calls may fail, and whose stores may be watched."""
        settings = self.settings
        if watch is not None:
            settings = replace(settings, observe=watch.around)

        async def start() -> Push:
            poster = FailingPoster(guard, *failures)
            self._posters.append(poster)
            return await Push.start(settings, poster, calls)

        push = self.run(start())
        self._pushes.append(push)
        return push

    def let_pass(self, seconds: float) -> None:
        """Let real time pass for the push processes, which jumps instead."""
        self.run(let_pass(seconds))

    def let_work(self) -> None:
        """Wait until the push processes have done all that they can do now."""

        async def let_others_run() -> None:
            for _ in range(50):
                await asyncio.sleep(0)

        def is_idle() -> bool:
            self.run(let_others_run())
            found = [each for push in self._pushes for _, each in push._pushes.values()]  # noqa: SLF001 - nothing outside shows it
            return all(each._polling is None and not each._calls for each in found)  # noqa: SLF001

        until(is_idle)

    def stop(self, push: Push, seconds: float = 5.0) -> None:
        """Stop a push process."""
        self._pushes.remove(push)
        self.run(push.close(seconds))

    def close(self) -> None:
        for push in list(self._pushes):
            self.stop(push, 0)
        for poster in self._posters:
            self.run(poster.close())
        self.run(self._opened.close())


@contextmanager
def pushing(url: str, *, manual: bool = False, **more: Any) -> Iterator[Pushing]:
    """Give push processes an event loop until the end of the block."""
    loop = MovableLoop()
    clock = ManualClock(START) if manual else ClockOfLoop(loop)
    settings = QueueSettings(url, clock, **more)
    thread = threading.Thread(target=loop.run_forever, name="pushing", daemon=True)
    thread.start()
    try:
        found = Pushing(settings, loop)
        try:
            yield found
        finally:
            found.close()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()


def memory_url() -> str:
    """Return the URL of a database that no other test has."""
    return f"memory:push-{secrets.token_hex(6)}"

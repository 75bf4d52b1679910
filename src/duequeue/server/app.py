"""The service as an ASGI app, to be served by itself or mounted into another app."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import quote

from duequeue import defaults
from duequeue.callbacks.failures import words_about
from duequeue.callbacks.guard import Guard, default_policy
from duequeue.callbacks.pushing import Push, PushSettings
from duequeue.clock import Clock, SystemClock
from duequeue.parts import QueueSettings
from duequeue.queue_names import OWN_QUEUES
from duequeue.retention import Retention
from duequeue.server import (
    buried,
    crons,
    dev_clock,
    endpoints,
    health,
    history,
    messages,
    offering,
    operations,
    polling,
    port,
    responses,
    settling,
    stats,
)
from duequeue.server.access import ANYBODY, Access
from duequeue.server.counting import Counting
from duequeue.server.cron_keeper import CronKeeper
from duequeue.server.departures import ClientGone
from duequeue.server.endpoints import EndpointKeeper
from duequeue.server.exchange import Exchange, Receive, Scoped, Send
from duequeue.server.failures import traceback_of
from duequeue.server.limits import Limits
from duequeue.server.live import Live
from duequeue.server.metrics import Meter
from duequeue.server.openapi import description
from duequeue.server.operations import Operations
from duequeue.server.problems import Problem, problem_of, stopping
from duequeue.server.queues import Queues
from duequeue.server.reads import Reads
from duequeue.server.routing import Routes
from duequeue.server.store_watch import StoreWatch
from duequeue.server.tokens import TokenFile

logger = logging.getLogger("duequeue.server")

ROUTES = Routes(
    (
        *offering.ROUTES,
        *messages.ROUTES,
        *polling.ROUTES,
        *settling.ROUTES,
        *responses.ROUTES,
        *buried.ROUTES,
        *stats.ROUTES,
        *history.ROUTES,
        *crons.ROUTES,
        *endpoints.ROUTES,
        *operations.ROUTES,
        *dev_clock.ROUTES,
        *health.ROUTES,
        *port.ROUTES,
    )
)
SERVER_FAILED = 500


class Service:
    """An ASGI app; it opens the store with its first request, or when its lifespan begins.

    Close it when the app that it is mounted into ends. Without `crons`, it does not look for crons
    by itself.
    """

    def __init__(
        self,
        settings: QueueSettings,
        access: Access,
        limits: Limits,
        push: PushSettings | None = None,
        *,
        crons: bool = True,
    ) -> None:
        self.limits = limits
        self.access = access
        self.meter = Meter(limits.open_queues)
        self.queues = Queues(settings, limits, self.meter)
        self.watch = StoreWatch(self.queues)
        self.reads = Reads(limits, self.watch.answers)
        self.counting = Counting(self.queues, limits.open_queues)
        self.live = Live(limits, access.is_valid)
        self.operations = Operations()
        self.crons = CronKeeper(self.queues, looks=crons)
        self.endpoints = EndpointKeeper(self.queues)
        self._background: set[asyncio.Task[None]] = set()
        self._push = push
        self._pushing = AsyncExitStack()
        self.running_push: Push | None = None

    async def __call__(self, scope: Scoped, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the lifespan of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(Exchange(self, scope, receive, send), _raw_path(scope))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})

    @cached_property
    def description(self) -> bytes:
        """The OpenAPI document."""
        return description(ROUTES)

    def is_own(self, queue: str) -> bool:
        """Return whether a queue is the server's own, which no request may touch."""
        return queue in OWN_QUEUES

    def check_callback(self, url: str) -> None:
        """Raise Refused if this server would never call a URL."""
        if self._push is not None and self._push.guard is not None:
            self._push.guard.checked_url(url)

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Go on with something after its request has ended."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def start(self) -> None:
        """Make the store ready; raise if it is not available."""
        await self.queues.start()
        self.crons.start()
        self.counting.start()
        if self._push is not None:
            settings = replace(
                self.queues.settings,
                lease=defaults.CONSUMER_LEASE,
                max_attempts=None,
                observe=self.meter.metered,
            )
            running = self._push.running(settings)
            self.running_push = await self._pushing.enter_async_context(running)

    def hurry(self) -> None:
        """Give callbacks no time to end when the service is closed; their messages come again."""
        if self.running_push is not None:
            self.running_push.hurry()

    async def close(self) -> None:
        """Wake everybody who waits, end what runs in the background, and close the queues."""
        self.live.close()
        await self.counting.close()
        await self.watch.close()
        await self._pushing.aclose()
        await self.crons.close()
        await self.operations.close()
        if self._background:
            await asyncio.wait(self._background)
        await self.queues.close()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except Exception as error:  # noqa: BLE001 - the server reports it and ends
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, exchange: Exchange, raw_path: bytes) -> None:
        began = perf_counter()
        route = "none"
        try:
            exchange.match = ROUTES.match(exchange.method, raw_path)
            chosen = exchange.match.route
            route = chosen.path
            await self._check(exchange)
            _ = exchange.query  # which raises for what the route does not know
            if chosen.body is None:
                await exchange.refuse_body()
            await chosen.handle(exchange)
        except ClientGone:
            exchange.status = 499
        except asyncio.CancelledError:  # a server that stops gives up on a slow request like this
            if not self.live.closing:
                raise
            await self._refuse(exchange, stopping())
        except Exception as error:  # noqa: BLE001 - every error is an answer
            await self._refuse(exchange, error)
            error.__traceback__ = None  # whose frames may hold the error and the request
        finally:
            for queue in exchange.used:
                queue.users -= 1
            self.meter.answered(exchange.method, route, exchange.status, perf_counter() - began)

    async def _check(self, exchange: Exchange) -> None:
        route = exchange.match.route
        if route.open:
            exchange.grant = ANYBODY
            return
        exchange.grant = self.access.grant_for(exchange.method, exchange.headers, exchange.client)
        queue = exchange.path.get("queue")
        if queue is not None and self.is_own(queue):
            raise Problem(403, "forbidden", "this queue belongs to the server itself")
        if route.scope is not None:
            exchange.check(route.scope, queue or "")
        if not route.offline:
            self.watch.refuse_in_an_outage()
        self.crons.start()

    async def _refuse(self, exchange: Exchange, error: Exception) -> None:
        problem = problem_of(error)
        if problem.status >= SERVER_FAILED and not self.watch.is_lost(problem):
            self._log(exchange.request_id, problem, error)
        if not exchange.started:
            await exchange.refuse(problem)

    def _log(self, request_id: str, problem: Problem, error: Exception) -> None:
        cause = error.__cause__ or error
        if problem.status == SERVER_FAILED:
            own = cause if isinstance(error, Problem) else error
            words, places = words_about(own), traceback_of(error)
            logger.error("request %s failed: %s\n%s", request_id, words, places)
            return
        kind = type(cause).__name__
        logger.warning("request %s failed: %s: %s", request_id, kind, problem.detail)


def _raw_path(scope: Scoped) -> bytes:
    """Return the path as it was sent, without the part under which this app is mounted."""
    raw: bytes | None = scope.get("raw_path")
    if raw is None:
        raw = quote(scope["path"], safe="/:@!$&'()*+,;=-._~").encode()
    raw = raw.partition(b"?")[0]
    root: str = scope.get("root_path", "").rstrip("/")
    return raw if not root else _below(quote(root).encode(), raw)


def _below(root: bytes, raw: bytes) -> bytes:
    return raw[len(root) :] if raw.startswith(root + b"/") else raw


def app_for(  # noqa: PLR0913 - the options of a server
    url: str,
    *,
    token_file: str | Path | None = None,
    clock: Clock | None = None,
    lease: timedelta = defaults.CONSUMER_LEASE,
    poll_interval: timedelta = defaults.POLL_INTERVAL,
    max_attempts: int | None = None,
    history: bool = True,
    retention: Retention | None = None,
    limits: Limits | None = None,
    trusted: bool = False,
    push: PushSettings | None = None,
    create: bool = True,
) -> Service:
    """Return the service on a store as an ASGI app, as in `app.mount("/due", app_for(url))`.

    With a file of tokens, every request needs a token. Without one, only requests from this
    machine to itself are answered, unless `trusted` says that the app which it is mounted into
    decides who may call it. With `push`, it posts messages to endpoints from its start on, which
    is when its lifespan begins. Without `create`, it refuses requests about queues that the
    database does not have.
    """
    settings = QueueSettings(
        url,
        SystemClock() if clock is None else clock,
        lease=lease,
        poll_interval=poll_interval,
        max_attempts=max_attempts,
        history=history,
        retention=retention,
        create=create,
    )
    tokens = None if token_file is None else TokenFile(token_file)
    access = Access(tokens, required=tokens is not None, trusted=trusted)
    if push is not None and push.guard is None:
        push = replace(push, guard=Guard(default_policy(has_tokens=tokens is not None)))
    return Service(settings, access, limits or Limits(), push)

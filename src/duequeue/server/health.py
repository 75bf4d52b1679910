"""Whether the server lives and is ready, its limits, its metrics and its description."""

from typing import Any

from duequeue.server import metrics_page, wire
from duequeue.server.exchange import Exchange
from duequeue.server.formats import JSON
from duequeue.server.limits import Limits
from duequeue.server.routing import Route
from duequeue.server.tokens import Scope


async def alive(exchange: Exchange) -> None:
    """Answer as long as the process works at all."""
    await exchange.answer(wire.Health("ok"))


async def ready(exchange: Exchange) -> None:
    """Answer whether requests would be served now."""
    if exchange.service.live.draining:
        await exchange.answer(wire.Health("stopping"), status=503)
    elif await exchange.service.watch.answers():
        await exchange.answer(wire.Health("ok"))
    else:
        detail = "the store is unavailable"
        await exchange.answer(wire.Health("unavailable", detail), status=503)


async def limits(exchange: Exchange) -> None:
    """Show the limits."""
    await exchange.answer(exchange.service.limits)


async def metrics(exchange: Exchange) -> None:
    """Show the metrics as Prometheus reads them."""
    exchange.check(Scope.READ, "")
    exchange.service.counting.start()  # if the app that it is mounted into has not started it
    text = metrics_page.text(exchange.service)
    await exchange.send_bytes(text.encode(), b"text/plain; version=0.0.4; charset=utf-8")


async def openapi(exchange: Exchange) -> None:
    """Show the description of this API."""
    await exchange.send_bytes(exchange.service.description, JSON.content_type)


ROUTES = (
    Route("GET", "/healthz", alive, "Whether the process works", answer=wire.Health, open=True),
    Route(
        "GET",
        "/readyz",
        ready,
        "Whether requests are served now",
        answer=wire.Health,
        other_answers=((503, wire.Health),),
        open=True,
    ),
    Route("GET", "/v1/limits", limits, "The limits of the service", answer=Limits, open=True),
    Route(
        "GET",
        "/metrics",
        metrics,
        "Metrics for Prometheus",
        answer=str,
        answer_types=("text/plain",),
        offline=True,
    ),
    Route(
        "GET",
        "/openapi.json",
        openapi,
        "The description of this API",
        answer=dict[str, Any],
        open=True,
    ),
)

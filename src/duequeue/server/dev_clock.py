"""The clock of a development server, which runs by itself and can be moved ahead."""

from datetime import UTC, datetime, timedelta

from duequeue.clock import ManualClock
from duequeue.instants import instant_text
from duequeue.server import wire
from duequeue.server.exchange import Exchange
from duequeue.server.problems import invalid, not_found
from duequeue.server.routing import Route
from duequeue.server.times import read_duration
from duequeue.server.tokens import Scope


class DevClock(ManualClock):
    """The system's clock, moved ahead by some time; each move wakes those who wait."""

    def __init__(self) -> None:
        super().__init__(datetime.now(UTC))
        self._ahead = timedelta(0)

    def now(self) -> datetime:
        """Return the present instant, as moved."""
        with self._lock:
            return datetime.now(UTC) + self._ahead

    def advance(self, by: timedelta) -> None:
        """Move the clock by a duration."""
        with self._lock:
            self._ahead += by
        self._notify_listeners()


async def advance(exchange: Exchange) -> None:
    """Move the clock of a development server."""
    asked: wire.ClockMove = await exchange.decoded(wire.ClockMove)
    exchange.check(Scope.ADMIN, "")
    clock = exchange.service.queues.settings.clock
    if not isinstance(clock, DevClock):
        raise not_found("only a server that was started with --dev has a clock that moves")
    by = read_duration(asked.by, "by")
    try:
        clock.now() + by + timedelta(days=1000)
    except OverflowError:
        raise invalid("by", "by would move the clock beyond the year 9999") from None
    clock.advance(by)
    await exchange.answer(wire.ClockTime(instant_text(clock.now())))


ROUTES = (
    Route(
        "POST",
        "/v1/clock:advance",
        advance,
        "Move the clock of a development server ahead",
        body=wire.ClockMove,
        answer=wire.ClockTime,
        offline=True,
        errors=(404,),
    ),
)

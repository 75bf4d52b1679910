"""`?alerts=redis://…` in the URL of a database: wake-ups between processes go through Redis."""

from collections.abc import Callable
from typing import TypeAlias

from duequeue.errors import InvalidArgument, MissingExtra
from duequeue.port.alerts import Alerts, OnAlert

OpenAlerts: TypeAlias = Callable[[str, OnAlert], Alerts]


def published_alerts(url: str | None) -> OpenAlerts | None:
    """Return what opens the alerts of a queue; None if the URL does not ask for it."""
    if url is None:
        return None
    try:
        from duequeue.stores.redis_client.published import PublishedAlerts  # noqa: PLC0415
        from duequeue.stores.redis_client.settings import RedisSettings  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("alerts= needs redis-py: pip install 'duequeue[redis]'") from error
    try:
        settings = RedisSettings.from_url(url)
    except ValueError as error:
        words = str(error).removeprefix("url ")
        raise InvalidArgument(
            "url", text=f"alerts in the url must be the url of a Redis, which {words}"
        ) from None
    return lambda kind, on_alert: PublishedAlerts(settings, kind, on_alert)

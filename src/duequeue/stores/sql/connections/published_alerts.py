"""`?alerts=redis://…` in the URL of a database: wake-ups between processes go through Redis."""

from typing import Any

from duequeue.errors import InvalidArgument, MissingExtra
from duequeue.stores.mailbox import Wire


def published_wire(url: str | None) -> Wire[Any] | None:
    """Return the wire through the Redis of a URL; None if there is no URL."""
    if url is None:
        return None
    try:
        from duequeue.stores.redis_client.settings import RedisSettings  # noqa: PLC0415
        from duequeue.stores.redis_client.wire import PublishedWire  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("alerts= needs redis-py: pip install 'duequeue[redis]'") from error
    try:
        return PublishedWire(RedisSettings.from_url(url))
    except ValueError as error:
        words = str(error).removeprefix("url ")
        raise InvalidArgument(
            "url", text=f"alerts in the url must be the url of a Redis, which {words}"
        ) from None

"""DueQueue over HTTP: `app_for(url)` is an ASGI app, and `duequeue serve` runs it."""

from duequeue.errors import MissingExtra

try:
    from duequeue.server.app import Service, app_for
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise MissingExtra("the service needs more packages: pip install 'duequeue[server]'") from error

from duequeue.server.limits import Limits

__all__ = ["Limits", "Service", "app_for"]

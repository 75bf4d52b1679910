"""What a worker does for handlers that use Django."""

import importlib.util
import os
from collections.abc import Callable
from functools import wraps
from typing import Any

from duequeue.cli.handler_path import is_async

SETTINGS_VARIABLE = "DJANGO_SETTINGS_MODULE"


def uses_django() -> bool:
    """Return whether the environment names Django's settings and Django is installed."""
    named = bool(os.environ.get(SETTINGS_VARIABLE))
    return named and importlib.util.find_spec("django") is not None


def set_up_django() -> None:
    """Set Django up, if it is used, so that handlers may import models."""
    if uses_django():
        import django

        django.setup()


def with_fresh_connections(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return a handler that closes broken and old connections of Django before and after each call.

    Django does so at the beginning and at the end of each request, which handlers do not have.
    """
    if not uses_django():
        return handler
    return _awaiting(handler) if is_async(handler) else _blocking(handler)


def _blocking(handler: Callable[..., Any]) -> Callable[..., Any]:
    from django.db import close_old_connections

    @wraps(handler)
    def call(delivery: object) -> object:
        close_old_connections()
        try:
            return handler(delivery)
        finally:
            close_old_connections()

    return call


def _awaiting(handler: Callable[..., Any]) -> Callable[..., Any]:
    from asgiref.sync import sync_to_async
    from django.db import close_old_connections

    # Django keeps the connections of coroutines on one thread, which this runs on.
    close = sync_to_async(close_old_connections)

    @wraps(handler)
    async def call(delivery: object) -> object:
        await close()
        try:
            return await handler(delivery)
        finally:
            await close()

    return call

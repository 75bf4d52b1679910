"""Handlers that use a model, which cannot be imported before Django is set up."""

from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import connection

from duequeue import AsyncDelivery, Delivery
from tests.cli.handlers import say


def save(key: str) -> None:
    """Save a row, and say whether the connection was closed after the last call."""
    was_closed = connection.connection is None
    Group.objects.create(name=key)
    say("saved", key, "closed" if was_closed else "open", Group.objects.count())


def handle(delivery: Delivery) -> None:
    """Save on a thread."""
    save(delivery.key)


async def handle_async(delivery: AsyncDelivery) -> None:
    """Save where Django keeps the connections of coroutines."""
    await sync_to_async(save)(delivery.key)

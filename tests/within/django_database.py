"""Django's connections to a store's database, in a process without a Django project."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import django
from django.conf import settings
from django.db import connections

from tests.fixtures.mysqlclient import mysqlclient

ALIAS = "shop"

ENGINES = {
    "mariadb": "django.db.backends.mysql",
    "postgresql": "django.db.backends.postgresql",
}


@contextmanager
def django_database(url: str) -> Iterator[str]:
    """The alias under which Django knows the database of a URL; closes this thread's connection."""
    if not settings.configured:
        settings.configure(DATABASES={}, USE_TZ=True, LOGGING_CONFIG=None)
        django.setup()
    configured = connections.configure_settings({"default": database_of(url)})
    connections.settings[ALIAS] = configured["default"]
    try:
        yield ALIAS
    finally:
        connections[ALIAS].close()
        del connections[ALIAS]


def database_of(url: str) -> dict[str, Any]:
    """Return an entry of DATABASES."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": url.removeprefix("sqlite:///"),
            "OPTIONS": {"transaction_mode": "IMMEDIATE"},
        }
    if parts.scheme == "mariadb" and "MySQLdb" not in sys.modules:
        mysqlclient()
    return {
        "ENGINE": ENGINES[parts.scheme],
        "NAME": parts.path.removeprefix("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname,
        "PORT": parts.port,
    }

"""The contract brings its own fixtures; those of the servers and stores are in tests/fixtures."""

from importlib import import_module

import pytest
from hypothesis import settings

# How long an example takes depends on what else the machine does, so it never fails a test.
settings.register_profile("duequeue", deadline=None)
settings.load_profile("duequeue")

pytest_plugins = [
    "duequeue.contract.plugin",
    "tests.fixtures.choosing",
    "tests.fixtures.grouping",
    "tests.fixtures.mariadb",
    "tests.fixtures.galera",
    "tests.fixtures.memory",
    "tests.fixtures.own_tokens",
    "tests.fixtures.postgres",
    "tests.fixtures.sqlite",
    "tests.fixtures.http_farm",
    "tests.fixtures.injecting",
    "tests.fixtures.pgbouncer",
    "tests.fixtures.redis",
    "tests.fixtures.silence",
    "tests.fixtures.spark",
    "tests.fixtures.temporary",
]


def pytest_configure(config: pytest.Config) -> None:
    """Test each of our own stores, unless --url names another."""
    if config.getoption("--url") is None:
        config.pluginmanager.register(import_module("tests.fixtures.stores"))

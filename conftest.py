"""The contract brings its own fixtures; those of the servers and stores are in tests/fixtures."""

from importlib import import_module

import pytest

pytest_plugins = [
    "duequeue.contract.plugin",
    "tests.fixtures.grouping",
    "tests.fixtures.postgres",
    "tests.fixtures.spark",
]


def pytest_configure(config: pytest.Config) -> None:
    """Test each of our own stores, unless --url names another."""
    if config.getoption("--url") is None:
        config.pluginmanager.register(import_module("tests.fixtures.stores"))

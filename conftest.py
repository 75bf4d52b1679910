"""Every fixture lives in a plugin of its own under tests/fixtures."""

pytest_plugins = [
    "tests.fixtures.postgres",
    "tests.fixtures.faces",
    "tests.fixtures.spark",
    "tests.fixtures.stores",
]

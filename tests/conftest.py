"""Every fixture lives in a plugin of its own under tests/fixtures."""

from hypothesis import settings

# How long an example takes depends on what else the machine does, so it never fails a test.
settings.register_profile("duequeue", deadline=None)
settings.load_profile("duequeue")

pytest_plugins = [
    "tests.fixtures.postgres",
    "tests.fixtures.faces",
    "tests.fixtures.spark",
    "tests.fixtures.stores",
]

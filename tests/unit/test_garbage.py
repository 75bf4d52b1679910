"""How often a process of our own looks for reference cycles."""

import gc
from collections.abc import Iterator

import pytest

from duequeue.process.garbage import NEW_OBJECTS, collect_seldom


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_what_was_loaded_is_never_looked_at_and_the_rest_is_seldom() -> None:
    collect_seldom()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] == NEW_OBJECTS
    assert gc.isenabled()

"""One object per name, for as long as somebody holds it."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from duequeue.process.shared import Shared


class Thing:
    """Something that can be held weakly."""


def test_the_same_name_is_the_same_object() -> None:
    shared = Shared(Thing)
    first, second, other = shared.get("a"), shared.get("a"), shared.get("b")
    assert first is second
    assert first is not other


def test_nobody_holds_it_when_nobody_does() -> None:
    shared = Shared(Thing)
    thing = shared.get("a")
    reference = weakref.ref(thing)
    del thing
    gc.collect()
    assert reference() is None
    assert isinstance(shared.get("a"), Thing)


def test_threads_that_ask_at_once_get_the_same() -> None:
    shared = Shared(Thing)
    barrier = Barrier(8)

    def ask() -> Thing:
        barrier.wait()
        return shared.get("a")

    with ThreadPoolExecutor(8) as threads:
        things = [future.result() for future in [threads.submit(ask) for _ in range(8)]]
    assert len({id(thing) for thing in things}) == 1

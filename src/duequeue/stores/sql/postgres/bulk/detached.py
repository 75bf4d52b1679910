"""A copy of this process that outlives it and has none of its files open.

It is there at once, where a new interpreter takes a quarter of a second to start.
"""

import gc
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from select import select
from typing import NoReturn

Tell = Callable[[str], None]
Work = Callable[[Tell], None]

CAN_DETACH = hasattr(os, "fork")  # not on Windows
_STANDARD = range(3)
# A lock that another thread held stays locked in a copy: who waits must not wait for ever.
_PATIENCE = 60


def detach(work: Work) -> str:
    """Run work in a process of its own, and return the one thing it tells.

    If it fails before, that is why.
    """
    reading, writing = os.pipe()
    with os.fdopen(reading) as told:
        try:
            child = os.fork()
            if child == 0:
                _be_detached(work, writing)
        finally:
            os.close(writing)
        with suppress(ChildProcessError):  # if nobody is to be told of the end of children
            os.waitpid(child, 0)
        answers, _, _ = select([told], [], [], _PATIENCE)
        return told.read() if answers else f"its process said nothing for {_PATIENCE} s"


def _be_detached(work: Work, writing: int) -> NoReturn:
    try:
        _forget_the_planner(writing)
        os.setsid()  # what ends a group of processes would end it, too
        if os.fork() == 0:  # a grandchild is nobody's zombie
            work(partial(_tell, writing))
    except Exception as error:  # noqa: BLE001 - whoever waits is to know
        with suppress(OSError):  # unless it was told already
            _tell(writing, str(error))
    finally:
        os._exit(0)


def _tell(writing: int, words: str) -> None:
    with os.fdopen(writing, "w") as telling:
        telling.write(words)


def _forget_the_planner(kept: int) -> None:
    """Close its files; neither its garbage, which may own some, nor its signals are for us."""
    gc.disable()
    for ending in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in _STANDARD:
        os.dup2(nothing, number)
    still_open = {int(each.name) for each in Path("/dev/fd").iterdir()}
    for number in still_open - {*_STANDARD, kept}:
        with suppress(OSError):  # to list them was to open one more
            os.close(number)

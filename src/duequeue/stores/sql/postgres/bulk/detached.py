"""A copy of this process that outlives it and has none of its files open.

A copy starts at once, while a new interpreter takes a quarter of a second.
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

Answer = Callable[[str], None]
Work = Callable[[Answer], None]

CAN_DETACH = hasattr(os, "fork")  # not on Windows
_STANDARD = range(3)
# In seconds. A lock that another thread held stays locked in the copy, which may then hang.
_PATIENCE = 60


def detach(work: Work) -> str:
    """Run work in a process of its own, and return the one answer that it gives.

    If the work fails before it answers, return the reason.
    """
    reading, writing = os.pipe()
    with os.fdopen(reading) as pipe:
        try:
            child = os.fork()
            if child == 0:
                _be_detached(work, writing)
        finally:
            os.close(writing)
        with suppress(ChildProcessError):  # if this process ignores the end of its children
            os.waitpid(child, 0)
        answers, _, _ = select([pipe], [], [], _PATIENCE)
        return pipe.read() if answers else f"its process did not answer within {_PATIENCE} s"


def _be_detached(work: Work, writing: int) -> NoReturn:
    try:
        _forget_the_planner(writing)
        os.setsid()  # so that it does not end with its process group
        if os.fork() == 0:  # a grandchild never becomes our zombie
            work(partial(_answer, writing))
    except Exception as error:  # noqa: BLE001 - the waiting process returns it
        with suppress(OSError):  # unless the work has answered already
            _answer(writing, str(error))
    finally:
        os._exit(0)


def _answer(writing: int, words: str) -> None:
    with os.fdopen(writing, "w") as pipe:
        pipe.write(words)


def _forget_the_planner(kept: int) -> None:
    """Close its files, reset its signal handlers, and never collect garbage that owns its files."""
    gc.disable()
    for ending in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in _STANDARD:
        os.dup2(nothing, number)
    still_open = {int(each.name) for each in Path("/dev/fd").iterdir()}
    for number in still_open - {*_STANDARD, kept}:
        with suppress(OSError):  # one of them was open only to list the others
            os.close(number)

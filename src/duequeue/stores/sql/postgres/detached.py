"""A copy of this process that outlives it and has none of its files open.

It is there at once, where a new interpreter takes a quarter of a second to start.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TextIO

Work = Callable[[TextIO], None]

CAN_DETACH = hasattr(os, "fork")  # not on Windows


def detach(work: Work) -> str:
    """Run work in a process of its own; return what it has told when it closes its one file."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _be_detached(work, writing)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as told:
        return told.read()


def _be_detached(work: Work, writing: int) -> NoReturn:
    try:
        os.setsid()  # what ends a group of processes would end it, too
        if os.fork() == 0:  # a grandchild is nobody's zombie
            _close_all_but(writing)
            with os.fdopen(writing, "w") as telling:
                work(telling)
    finally:
        os._exit(0)  # what the copied process has yet to do is not for this one


def _close_all_but(kept: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    standard = range(3)
    for number in standard:
        os.dup2(nothing, number)
    still_open = {int(each.name) for each in Path("/dev/fd").iterdir()}
    for number in still_open - {*standard, kept}:
        with suppress(OSError):  # to list them was to open one more
            os.close(number)

"""Counts the Python functions of DueQueue that a call runs through."""

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import duequeue

PACKAGE = str(Path(duequeue.__file__).parent)


class Frames(NamedTuple):
    """How many frames a call took, and in how many files they are."""

    frames: int
    files: int


def frames_of(call: Callable[[], object]) -> Frames:
    """Count the frames of DueQueue's own functions on this thread while `call` runs.

    A generator that is resumed goes on in its frame, so it counts once. On Python 3.11 a
    comprehension has a frame of its own.
    """
    found: dict[int, FrameType] = {}  # a frame that is kept here cannot lend its id to another

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found[id(frame)] = frame

    before = sys.getprofile()
    gc.disable()  # so that no garbage of earlier tests is collected during the call
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
        gc.enable()
    return Frames(len(found), len({frame.f_code.co_filename for frame in found.values()}))

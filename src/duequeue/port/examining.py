"""What an examination of a database finds, for `duequeue doctor`; a store need not offer one.

A store has its examination in a file `examining.py` of its own. The examination changes nothing
and waits for no lock. If the login lacks a right to look at something, this is reported as advice.
"""

from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable

from duequeue.instants import MILLISECOND, words_for
from duequeue.port.store import Steps

WORRYING_SKEW, BAD_SKEW = 1000, 60_000
CROWDED = 0.8


class Level(Enum):
    """How serious a finding is."""

    OK = "ok"
    ADVICE = "advice"  # everything works, but could work better, or may soon fail
    PROBLEM = "problem"  # messages are late, lost or refused, or soon will be


class Finding(NamedTuple):
    """One thing that was examined.

    `about` is a word or two, such as "clock". `text` is a sentence with the measured value, and
    `advice` a sentence with the way out, empty if all is well. None of them holds a secret.
    """

    level: Level
    about: str
    text: str
    advice: str = ""


@runtime_checkable
class Examinable(Protocol):
    """A backend that can examine its database."""

    def examine(self, now: int) -> Steps[list[Finding]]:
        """Examine the database, whose tables may be missing, or older or newer than this code.

        `now` is the clock of this process, to compare with the clock of the database.
        """


def judge_clock(ahead: int) -> Finding:
    """Judge how far the clock of the server is ahead of ours, in milliseconds."""
    direction = "ahead of" if ahead >= 0 else "behind"
    text = f"The clock of the server is {words_for(abs(ahead) * MILLISECOND)} {direction} ours."
    if abs(ahead) < WORRYING_SKEW:
        return Finding(Level.OK, "clock", text)
    advice = (
        "Synchronise the clocks of all machines, because consumers decide by theirs what is due."
    )
    level = Level.ADVICE if abs(ahead) < BAD_SKEW else Level.PROBLEM
    return Finding(level, "clock", text, advice)


def judge_connections(used: int, most: int, advice: str) -> Finding:
    """Judge how many of the connections that a server allows are in use."""
    text = f"{used} of {most} connections are in use."
    if used >= CROWDED * most:
        return Finding(Level.ADVICE, "connections", text, advice)
    return Finding(Level.OK, "connections", text)

"""What an examination of a database finds, for `duequeue doctor`; a store need not offer one.

A store has its examination in a file `examining.py` of its own. The examination changes nothing
and waits for no lock. If the login lacks a right to look at something, this is reported as advice.
"""

from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable

from duequeue.port.store import Steps


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

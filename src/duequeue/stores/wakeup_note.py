"""The texts by which one process notifies the others: of a due time, or of a response."""

from typing import NamedTuple

from duequeue.port.alerts import Answered

# No process has a name that begins like this. A version that does not know these notes takes one
# for a message of a queue that it does not have, and ignores it.
_ANSWERED = "="


class Note(NamedTuple):
    """A wake-up on its way between two processes."""

    sender: str
    alert: int | Answered
    kind: str

    def __str__(self) -> str:
        sender, alert, kind = self
        if isinstance(alert, Answered):
            return f"{_ANSWERED}{sender} {len(kind)} {kind}{alert.key}"
        return f"{sender} {alert} {kind}"

    @classmethod
    def parse(cls, text: str) -> "Note":
        """Parse the text of a note; raise ValueError for any other text."""
        sender, number, rest = text.split(" ", 2)
        if not sender.startswith(_ANSWERED):
            return cls(sender, int(number), rest)
        length = int(number)
        return cls(sender.removeprefix(_ANSWERED), Answered(rest[length:]), rest[:length])

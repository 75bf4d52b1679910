"""The texts by which one process notifies the others: of a due time, or of a response."""

from typing import NamedTuple


class Note(NamedTuple):
    """A wake-up on its way between two processes."""

    sender: str
    due_at: int
    kind: str

    def __str__(self) -> str:
        return f"{self.sender} {self.due_at} {self.kind}"

    @classmethod
    def parse(cls, text: str) -> "Note":
        """Parse the text of a note; raise ValueError for any other text."""
        sender, due_at, kind = text.split(" ", 2)
        return cls(sender, int(due_at), kind)


# No process has a name that begins like this. A version that does not know these notes takes one
# for a message of a queue that it does not have, and ignores it.
_ANSWERED = "="


class AnsweredNote(NamedTuple):
    """The news of a response on its way between two processes."""

    sender: str
    kind: str
    key: str

    def __str__(self) -> str:
        return f"{_ANSWERED}{self.sender} {len(self.kind)} {self.kind}{self.key}"

    @classmethod
    def of(cls, note: Note) -> "AnsweredNote | None":
        """Return the news that a note carries, if it is about a response."""
        sender, length, text = note
        if not sender.startswith(_ANSWERED):
            return None
        return cls(sender.removeprefix(_ANSWERED), text[:length], text[length:])

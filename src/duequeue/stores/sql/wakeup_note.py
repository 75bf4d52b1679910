"""The text by which one process notifies the others: its sender, a due time and a kind."""

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

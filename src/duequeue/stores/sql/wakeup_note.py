"""What one process tells the others: by whom, for which instant, of which kind of message."""

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
        """Read what was sent; anything else is a ValueError."""
        sender, due_at, kind = text.split(" ", 2)
        return cls(sender, int(due_at), kind)

"""What `duequeue pipeline deliver` is tested with."""

from duequeue.pipeline import Received


def twice(batch: list[Received]) -> list[int]:
    """Return the double of each payload."""
    return [each.payload * 2 for each in batch]

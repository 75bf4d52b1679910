"""What somebody may have meant who misspelt a name."""

from collections.abc import Collection
from difflib import get_close_matches


def suggestion(name: str, known: Collection[str]) -> str:
    """Return the most similar known name as a question, or nothing."""
    alike = get_close_matches(name[:100], known, n=1)
    return f"did you mean {alike[0]!r}?" if alike else ""


def advice(name: str, known: Collection[str]) -> str:
    """Return the same, or all known names, in their order, if none is similar."""
    return suggestion(name, known) or f"known are: {', '.join(known)}"
